/** A value that must exist at this point of a test, such as an element of a list. Throws if it is missing. */
export const required = <T>(value: T | null | undefined): T => {
  if (value === undefined || value === null) throw new Error(`expected a value, got ${value}`)
  return value
}

/** The first two elements of a list that has at least two. */
export const firstTwo = <T>(list: readonly T[]): [T, T] => [required(list[0]), required(list[1])]
