/** A line of a chart, with a value for each time; null where there is none. */
export interface Line {
  readonly label: string
  readonly values: readonly (number | null)[]
}

const HOUR_MS = 3_600_000

/** The indexes for a table of the chart: the last time of each hour. */
export const hourlyIndexes = (timesMs: readonly number[]): readonly number[] =>
  timesMs.flatMap((ms, index) => {
    const next = timesMs[index + 1]
    return next === undefined || Math.floor(next / HOUR_MS) > Math.floor(ms / HOUR_MS) ? [index] : []
  })

/** The index that a key moves to; null for other keys. Moves stop at the ends. */
export const indexAfterKey = (key: string, index: number | null, length: number): number | null => {
  const last = length - 1
  const from = index ?? last
  const targets: Readonly<Record<string, number>> = {
    ArrowLeft: from - 1,
    ArrowRight: from + 1,
    PageUp: from - 12,
    PageDown: from + 12,
    Home: 0,
    End: last
  }
  const target = targets[key]
  return target === undefined || length === 0 ? null : Math.min(Math.max(target, 0), last)
}
