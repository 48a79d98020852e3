import type { Figures, Frame, NodeFigures } from '../relay/admin/contract.js'
import type { Line } from './figures.js'

/** The slowest node is the one that people wait for; everything else adds up. */
const OF_THE_WORST: ReadonlySet<keyof Figures> = new Set(['eventLoopDelayMs'])

/** The figure of one node, or of all together; null where the frame does not know it. */
export const figureOf = ({ nodes }: Frame, key: keyof Figures, node: string | null): number | null => {
  const values = nodes.filter((one) => node === null || one.node === node).map((one) => one[key])
  if (values.length === 0) return null
  return OF_THE_WORST.has(key) ? Math.max(...values) : values.reduce((sum, value) => sum + value, 0)
}

const NAMES = new Intl.Collator('en', { numeric: true })

/** They come in no order, and a table whose rows change places cannot be read. */
export const nodesOf = (frame: Frame | null): readonly NodeFigures[] =>
  [...(frame?.nodes ?? [])].sort((one, other) => NAMES.compare(one.name, other.name))

/** Seconds without a frame that are drawn as a gap: nobody looked, or nobody could. */
const GAP_MS = 5000

/** Columns as uPlot takes them: times in seconds, then one for each line. */
export const columnsOf = (
  frames: readonly Frame[],
  lines: readonly Line[],
  node: string | null
): [number[], ...(number | null)[][]] => {
  const times: number[] = []
  const values: (number | null)[][] = lines.map(() => [])
  let beforeMs = frames[0]?.time ?? 0
  for (const frame of frames) {
    if (frame.time - beforeMs > GAP_MS) {
      times.push((beforeMs + 1000) / 1000)
      for (const column of values) column.push(null)
    }
    times.push(frame.time / 1000)
    for (const [index, { key }] of lines.entries()) values[index]?.push(figureOf(frame, key, node))
    beforeMs = frame.time
  }
  return [times, ...values]
}

const WINDOW_MS = 15 * 60_000

/** With the new one at its end, and without what is too old to be drawn. */
export const withFrame = (frames: readonly Frame[], frame: Frame): readonly Frame[] => [
  ...frames.filter(({ time }) => time > frame.time - WINDOW_MS && time < frame.time),
  frame
]
