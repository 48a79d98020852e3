/**
 * What an engine may answer with: at once where it can, so that subscribing and publishing in memory cost no promise and
 * happen within one turn, or later where a network is in between.
 */
export type MaybePromise<T> = T | Promise<T>

export const after = <T, R>(value: MaybePromise<T>, next: (value: T) => R | Promise<R>): MaybePromise<R> =>
  value instanceof Promise ? value.then(next) : next(value)

type Settled<T> = PromiseSettledResult<T>

const fulfilled = <T>(value: T): Settled<T> => ({ status: 'fulfilled', value })
const rejected = (reason: unknown): PromiseRejectedResult => ({ status: 'rejected', reason })

const settle = <T>(work: () => MaybePromise<T>): MaybePromise<Settled<T>> => {
  try {
    const result = work()
    return result instanceof Promise ? result.then(fulfilled, rejected) : fulfilled(result)
  } catch (error) {
    return rejected(error)
  }
}

/**
 * Begins all of the work and waits for all of it, also where some of it fails: a promise that nobody waits for would end
 * the process when it rejects. Never fails itself.
 */
export const settleAll = <T>(work: readonly (() => MaybePromise<T>)[]): MaybePromise<readonly Settled<T>[]> => {
  const settling = work.map(settle)
  return settling.some((each) => each instanceof Promise) ? Promise.all(settling) : (settling as readonly Settled<T>[])
}
