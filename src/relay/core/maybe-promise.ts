/**
 * What an engine may answer with: at once where it can, so that subscribing and publishing in memory cost no promise and
 * happen within one turn, or later where a network is in between.
 */
export type MaybePromise<T> = T | Promise<T>

export const after = <T, R>(value: MaybePromise<T>, next: (value: T) => R | Promise<R>): MaybePromise<R> =>
  value instanceof Promise ? value.then(next) : next(value)
