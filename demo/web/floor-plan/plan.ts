import { areaOf, isInside } from '../../../schemas/polygon.js'

// Geometry of a floor, in metres. This folder does not use browser APIs.

export interface Point {
  readonly x: number
  readonly y: number
}

export interface Size {
  readonly width: number
  readonly height: number
}

export type Rect = Point & Size

export interface Placed {
  readonly id: string
  readonly position: Point
}

export const distance = (from: Point, to: Point): number => Math.hypot(to.x - from.x, to.y - from.y)

export const middle = (one: Point, other: Point): Point => ({ x: (one.x + other.x) / 2, y: (one.y + other.y) / 2 })

/** The bounding box of some points, such as the corners of a zone. */
export const boxAround = (points: readonly Point[]): Rect => {
  const xs = points.map(({ x }) => x)
  const ys = points.map(({ y }) => y)
  const x = Math.min(...xs)
  const y = Math.min(...ys)
  return { x, y, width: Math.max(...xs) - x, height: Math.max(...ys) - y }
}

export const centreOfBox = ({ x, y, width, height }: Rect): Point => ({ x: x + width / 2, y: y + height / 2 })

/** A corner of a zone is stored as {x, y} or as [x, y]. */
type Corner = Point | readonly number[]

/** The corners of a zone; empty for a zone without an area. */
export const cornersOf = (polygon: readonly Corner[] | null | undefined): readonly Point[] =>
  (polygon ?? []).map((corner) => (isPoint(corner) ? corner : { x: corner[0] ?? 0, y: corner[1] ?? 0 }))

const isPoint = (corner: Corner): corner is Point => 'x' in corner

interface Zone {
  readonly id: string
  readonly polygon?: readonly Corner[] | null | undefined
}

/** The zone at a point: where zones overlap, the smallest one. */
export const zoneAt = <Found extends Zone>(zones: readonly Found[], point: Point): Found | undefined => {
  const found = zones
    .map((zone) => ({ zone, corners: cornersOf(zone.polygon) }))
    .filter(({ corners }) => isInside(corners, point))
  return found.toSorted((one, other) => areaOf(one.corners) - areaOf(other.corners))[0]?.zone
}

/** The nearest item within `reach`; undefined if there is none. */
export const nearest = <Item extends Placed>(items: readonly Item[], point: Point, reach: number): Item | undefined => {
  const away = ({ position }: Item): number => distance(position, point)
  return items.filter((item) => away(item) <= reach).sort((one, other) => away(one) - away(other))[0]
}
