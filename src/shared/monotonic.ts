/** For lengths of time: unmoved by whatever is done to the system's clock. */
export const monotonicMs = (): number => performance.now()
