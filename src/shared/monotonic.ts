/** For durations: not affected by changes of the system clock. */
export const monotonicMs = (): number => performance.now()
