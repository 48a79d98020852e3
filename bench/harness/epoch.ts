/** Milliseconds since 1970. Comparable between processes, unlike `performance.now()`, and finer than `Date.now()`. */
export const epochMs = (): number => performance.timeOrigin + performance.now()
