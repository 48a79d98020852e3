/**
 * For requests of the official client, which ignores the outcome of its POST to /emulation. If the relay closes the connection
 * before it has responded, the promise is rejected, and Node.js ends the process on an unhandled rejection.
 */
export const observed = <T>(response: Promise<T>): Promise<T> => {
  response.catch(() => undefined)
  return response
}

export const observedFetch: typeof fetch = (input, init) => observed(fetch(input, init))
