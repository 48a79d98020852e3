import type { FloorContext } from '../types.js'
import type { Rect } from './plan.js'

// The drawing of a floor without an uploaded plan, as SVG paths in metres: doors, stairs, and furniture by the type of room.

const TREAD = 0.5
/** Between furniture and walls; a label is above it. */
const INSET = 1.6

/** Furniture in rows: its size, and the distance from one piece to the next. */
const ROWS: Readonly<Record<string, readonly [width: number, height: number, right: number, down: number]>> = {
  office: [1.6, 0.8, 3, 3],
  laboratory: [3.2, 1, 4.6, 3],
  common: [1.2, 1.2, 3.4, 3.2],
  restricted: [0.8, 2.2, 2, 3.4],
  meeting: [5, 1.6, 8, 5]
}

/** The tables, desks or racks of a room, in the middle between its walls. */
export const furnitureOf = (type: string | null | undefined, { x, y, width, height }: Rect): readonly Rect[] => {
  const [wide, high, right, down] = ROWS[type ?? ''] ?? [0, 0, 0, 0]
  if (wide === 0) return []
  const columns = Math.max(Math.floor((width - 2 * INSET - wide) / right) + 1, 0)
  const rows = Math.max(Math.floor((height - 2 * INSET - high) / down) + 1, 0)
  const left = x + (width - wide - right * (columns - 1)) / 2
  const top = y + (height - high - down * (rows - 1)) / 2
  return Array.from({ length: columns * rows }, (_, index) => ({
    x: left + right * (index % columns),
    y: top + down * Math.floor(index / columns),
    width: wide,
    height: high
  }))
}

export const rectPath = ({ x, y, width, height }: Rect): string => `M${x} ${y}h${width}v${height}h${-width}z`

/** The treads of stairs, each as a line across them. */
export const treadsPath = ({ x, y, width, height }: Rect): string =>
  Array.from({ length: Math.max(Math.floor((height - 2 * INSET) / TREAD) - 1, 0) }, (_, index) => {
    return `M${x} ${y + 2 * INSET + index * TREAD}h${width}`
  }).join('')

/** The leaf of a door, and its swing to the other side of the doorway. It opens away from the corridor. */
export const doorPath = (
  { x, y, width, way, between }: FloorContext['doors'][number],
  corridors: ReadonlySet<string>
): string => {
  const side = corridors.has(between[0]) ? 1 : -1
  const radii = `${width} ${width}`
  return way === 'y'
    ? `M${x - width / 2} ${y}v${side * width}A${radii} 0 0 ${side < 0 ? 1 : 0} ${x + width / 2} ${y}`
    : `M${x} ${y - width / 2}h${side * width}A${radii} 0 0 ${side < 0 ? 0 : 1} ${x} ${y + width / 2}`
}
