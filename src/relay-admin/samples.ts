import type { FigureSample, Figures, NodeFigures } from '../relay/admin/contract.js'
import type { Line } from './figures.js'

/** The figure of one node, or the sum of all nodes if `node` is null; null if the sample does not contain it. */
export const figureOf = ({ nodes }: FigureSample, key: keyof Figures, node: string | null): number | null => {
  const values = nodes.filter((one) => node === null || one.node === node).map((one) => one[key])
  if (values.length === 0) return null
  // The delays of several event loops do not add up.
  return key === 'eventLoopDelayMs' ? Math.max(...values) : values.reduce((sum, value) => sum + value, 0)
}

const NAME_ORDER = new Intl.Collator('en', { numeric: true })

/** Sorted by name, because the relay sends nodes in any order. */
export const nodesOf = (sample: FigureSample | null): readonly NodeFigures[] =>
  [...(sample?.nodes ?? [])].sort((one, other) => NAME_ORDER.compare(one.name, other.name))

/** The relay records one sample in this time while no page is open. */
const RECORDING_PERIOD_MS = 5000
/** A longer time without a sample is drawn as a gap: two recorded ones are missing. */
const GAP_MS = 2 * RECORDING_PERIOD_MS + 2000

/** Columns for uPlot: times in seconds, then one column per line. */
export const columnsOf = (
  samples: readonly FigureSample[],
  lines: readonly Line[],
  node: string | null
): [number[], ...(number | null)[][]] => {
  const times: number[] = []
  const values: (number | null)[][] = lines.map(() => [])
  let previousMs = samples[0]?.time ?? 0
  for (const sample of samples) {
    if (sample.time - previousMs > GAP_MS) {
      times.push((previousMs + 1000) / 1000)
      for (const column of values) column.push(null)
    }
    times.push(sample.time / 1000)
    for (const [index, { key }] of lines.entries()) values[index]?.push(figureOf(sample, key, node))
    previousMs = sample.time
  }
  return [times, ...values]
}

const WINDOW_MS = 15 * 60_000

/** Adds recorded samples for the times without samples of this page, which are more frequent. */
export const withHistory = (
  samples: readonly FigureSample[],
  history: readonly FigureSample[]
): readonly FigureSample[] => {
  const periodOf = ({ time }: FigureSample): number => Math.floor(time / RECORDING_PERIOD_MS)
  const known = new Set(samples.map(periodOf))
  return [...samples, ...history.filter((sample) => !known.has(periodOf(sample)))].sort(
    (one, other) => one.time - other.time
  )
}

/** Appends a sample and removes those outside the drawn window. */
export const withSample = (samples: readonly FigureSample[], sample: FigureSample): readonly FigureSample[] => [
  ...samples.filter(({ time }) => time > sample.time - WINDOW_MS && time < sample.time),
  sample
]
