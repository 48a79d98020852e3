/** The list in pieces of so many. */
export const inBatches = <T>(all: readonly T[], size: number): (readonly T[])[] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, index) => all.slice(index * size, (index + 1) * size))
