/**
 * A value, or a promise of it. The memory engine has its results at once, and a promise costs more than most of them. Therefore a
 * publication reaches the sockets without one, and so do the replies to a connect without server-side channels and to a
 * subscribe to a stream, unless a backend is asked or a token has another signature than HMAC (decision 18). Such a function
 * may also throw at once: code that starts several of them has to handle both kinds of failure.
 */
export type MaybePromise<T> = T | Promise<T>

/** Continues at once with a value, and later with that of a promise. */
export const after = <T, R>(value: MaybePromise<T>, next: (value: T) => MaybePromise<R>): MaybePromise<R> =>
  value instanceof Promise ? value.then(next) : next(value)

/** Calls `failed` if the work throws an error or its promise is rejected. */
export const orElse = <T>(work: () => MaybePromise<T>, failed: (error: unknown) => T): MaybePromise<T> => {
  try {
    const result = work()
    return result instanceof Promise ? result.catch(failed) : result
  } catch (error) {
    return failed(error)
  }
}
