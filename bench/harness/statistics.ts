export const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((left, right) => left - right)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2
}

export interface Latency {
  readonly p50: number
  readonly p99: number
  readonly p999: number
}

export const latencyPercentiles = (values: readonly number[]): Latency => {
  const sorted = values.toSorted((left, right) => left - right)
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  return { p50: at(0.5), p99: at(0.99), p999: at(0.999) }
}

/** Compares readings of the same round, which other programs on the machine disturb equally. */
export const medianRatio = (ours: readonly number[], theirs: readonly number[]): number =>
  median(ours.map((value, index) => value / (theirs[index] ?? Number.NaN)))

export const medianDifference = (ours: readonly number[], theirs: readonly number[]): number =>
  median(ours.map((value, index) => value - (theirs[index] ?? Number.NaN)))
