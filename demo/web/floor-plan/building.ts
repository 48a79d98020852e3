import { cornersOf } from '../../../schemas/polygon.js'
import type { FloorContext } from '../types.js'
import type { Layer } from './layer.js'
import { boxAround, type Rect } from './plan.js'

// The drawing of a floor without an uploaded plan: walls with doors, stairs, and furniture by the type of room. In metres.

const WALL = 0.22
const TREAD = 0.5
/** Between furniture and walls; a label is above it. */
const INSET = 1.6

type Plan = Pick<FloorContext, 'walls' | 'doors' | 'zones'>

/** Furniture in rows: its size, and the distance from one piece to the next. */
const ROWS: Readonly<Record<string, readonly [width: number, height: number, right: number, down: number]>> = {
  office: [1.6, 0.8, 3, 3],
  laboratory: [3.2, 1, 4.6, 3],
  common: [1.2, 1.2, 3.4, 3.2],
  restricted: [0.8, 2.2, 2, 3.4]
}

/** The tables, desks or racks of a room. */
export const furnitureOf = (type: string | null | undefined, { x, y, width, height }: Rect): readonly Rect[] => {
  const room = { x: x + INSET, y: y + INSET, width: width - 2 * INSET, height: height - 2 * INSET }
  if (type === 'meeting') return room.width > 1 && room.height > 2 ? [tableIn(room)] : []
  const [wide, high, right, down] = ROWS[type ?? ''] ?? [0, 0, 0, 0]
  if (wide === 0) return []
  const columns = Math.max(Math.floor((room.width - wide) / right) + 1, 0)
  const rows = Math.max(Math.floor((room.height - high) / down) + 1, 0)
  // Centred between the walls.
  const [left, top] = [
    room.x + (room.width - wide - right * (columns - 1)) / 2,
    room.y + (room.height - high - down * (rows - 1)) / 2
  ]
  return Array.from({ length: Math.max(columns * rows, 0) }, (_, index) => ({
    x: left + right * (index % columns),
    y: top + down * Math.floor(index / columns),
    width: wide,
    height: high
  }))
}

const tableIn = ({ x, y, width, height }: Rect): Rect => ({
  x: x + width * 0.2,
  y: y + height * 0.3,
  width: width * 0.6,
  height: height * 0.4
})

/** The treads of stairs, each as a line across them. */
const treadsOf = ({ x, y, width, height }: Rect): FloorContext['walls'] =>
  Array.from({ length: Math.max(Math.floor((height - 2 * INSET) / TREAD), 0) }, (_, index) => {
    const at = y + 2 * INSET + index * TREAD
    return [x, at, x + width, at] as const
  }).filter(([, at]) => at < y + height - TREAD)

/** The door leaf and its swing: a centre, and the angles of the open and the closed leaf. It opens away from the corridor. */
const swingOf = ({ x, y, width, way, between }: Plan['doors'][number], corridors: ReadonlySet<string>) => {
  const isBack = !corridors.has(between[0])
  const half = width / 2
  if (way === 'y')
    return { x: x - half, y, width, open: ((isBack ? -1 : 1) * Math.PI) / 2, closed: 0, isClockwise: isBack }
  return { x, y: y - half, width, open: isBack ? Math.PI : 0, closed: Math.PI / 2, isClockwise: !isBack }
}

export const buildingLayer = ({ walls, doors, zones }: Plan): Layer => {
  const boxes = zones.flatMap(({ type, polygon }) => {
    const corners = cornersOf(polygon ?? [])
    return corners.length > 0 ? [{ type, box: boxAround(corners) }] : []
  })
  const furniture = boxes.flatMap(({ type, box }) => furnitureOf(type, box))
  const treads = boxes.flatMap(({ type, box }) => (type === 'stairs' ? treadsOf(box) : []))
  const corridors = new Set(zones.filter(({ type }) => type === 'corridor').map(({ id }) => id))
  const swings = doors.map((door) => swingOf(door, corridors))
  return {
    surface: 'ground',
    draw: ({ pen, view: { scale, x: left, y: top }, colour }) => {
      const line = (x1: number, y1: number, x2: number, y2: number): void => {
        pen.moveTo(x1 * scale + left, y1 * scale + top)
        pen.lineTo(x2 * scale + left, y2 * scale + top)
      }
      pen.strokeStyle = colour('--line')
      pen.fillStyle = colour('--surface')
      pen.lineWidth = 1
      pen.lineCap = 'butt'
      for (const { x, y, width, height } of furniture) {
        pen.fillRect(x * scale + left, y * scale + top, width * scale, height * scale)
        pen.strokeRect(x * scale + left, y * scale + top, width * scale, height * scale)
      }
      pen.strokeStyle = colour('--control-line')
      pen.beginPath()
      for (const [x1, y1, x2, y2] of treads) line(x1, y1, x2, y2)
      pen.stroke()
      for (const { x, y, width, open, closed, isClockwise } of swings) {
        pen.beginPath()
        line(x, y, x + width * Math.cos(open), y + width * Math.sin(open))
        // From the tip of the open leaf to the other side of the doorway.
        pen.arc(x * scale + left, y * scale + top, width * scale, open, closed, !isClockwise)
        pen.stroke()
      }
      pen.strokeStyle = colour('--muted')
      pen.lineWidth = Math.max(WALL * scale, 1.5)
      pen.lineCap = 'square'
      pen.beginPath()
      for (const [x1, y1, x2, y2] of walls) line(x1, y1, x2, y2)
      pen.stroke()
    }
  }
}
