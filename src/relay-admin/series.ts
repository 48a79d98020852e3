import type { Figures, Frame, NodeFigures } from '../relay/admin/contract.js'
import type { Line } from './figures.js'

/** For these figures the maximum over the nodes is shown, for all others the sum. */
const MAXIMUM_FIGURES: ReadonlySet<keyof Figures> = new Set(['eventLoopDelayMs'])

/** The figure of one node, or of all nodes if `node` is null; null if the frame does not contain it. */
export const figureOf = ({ nodes }: Frame, key: keyof Figures, node: string | null): number | null => {
  const values = nodes.filter((one) => node === null || one.node === node).map((one) => one[key])
  if (values.length === 0) return null
  return MAXIMUM_FIGURES.has(key) ? Math.max(...values) : values.reduce((sum, value) => sum + value, 0)
}

const NAME_ORDER = new Intl.Collator('en', { numeric: true })

/** Sorted by name, because the relay sends nodes in any order. */
export const nodesOf = (frame: Frame | null): readonly NodeFigures[] =>
  [...(frame?.nodes ?? [])].sort((one, other) => NAME_ORDER.compare(one.name, other.name))

/** A longer time without a frame is drawn as a gap. */
const GAP_MS = 5000

/** Columns for uPlot: times in seconds, then one column per line. */
export const columnsOf = (
  frames: readonly Frame[],
  lines: readonly Line[],
  node: string | null
): [number[], ...(number | null)[][]] => {
  const times: number[] = []
  const values: (number | null)[][] = lines.map(() => [])
  let previousMs = frames[0]?.time ?? 0
  for (const frame of frames) {
    if (frame.time - previousMs > GAP_MS) {
      times.push((previousMs + 1000) / 1000)
      for (const column of values) column.push(null)
    }
    times.push(frame.time / 1000)
    for (const [index, { key }] of lines.entries()) values[index]?.push(figureOf(frame, key, node))
    previousMs = frame.time
  }
  return [times, ...values]
}

const WINDOW_MS = 15 * 60_000

/** Appends a frame and removes those outside the drawn window. */
export const withFrame = (frames: readonly Frame[], frame: Frame): readonly Frame[] => [
  ...frames.filter(({ time }) => time > frame.time - WINDOW_MS && time < frame.time),
  frame
]
