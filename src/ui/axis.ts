/** The maximum of an axis: the next 1, 2 or 5 times a power of ten. */
export const niceMax = (value: number): number => {
  if (value <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  const step = [1, 2, 5, 10].find((candidate) => candidate * power >= value) ?? 10
  return step * power
}
