// Geometry of a floor, in metres. This folder does not use browser APIs, except for the drawing of markers.

export interface Point {
  readonly x: number
  readonly y: number
}

export interface Size {
  readonly width: number
  readonly height: number
}

export type Rect = Point & Size

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

export const overlaps = (one: Rect, other: Rect): boolean =>
  one.x < other.x + other.width &&
  other.x < one.x + one.width &&
  one.y < other.y + other.height &&
  other.y < one.y + one.height
