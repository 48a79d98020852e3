/** The value of the promise, or null if it rejects or takes longer. */
export const withTimeout = async <T>(ms: number, promise: Promise<T>): Promise<T | null> => {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, ms, null)
  })
  try {
    return await Promise.race([promise, timeout])
  } catch {
    return null
  } finally {
    clearTimeout(timer)
  }
}
