export interface Point {
  readonly x: number
  readonly y: number
}

export interface Rect extends Point {
  readonly width: number
  readonly height: number
}

/** A line as x1, y1, x2, y2. */
export type Wall = readonly [number, number, number, number]

export const box = (x: number, y: number, width: number, height: number): Rect => ({ x, y, width, height })

export const contains = ({ x, y, width, height }: Rect, point: Point): boolean =>
  point.x >= x && point.x <= x + width && point.y >= y && point.y <= y + height

export const centerOf = ({ x, y, width, height }: Rect): Point => ({ x: x + width / 2, y: y + height / 2 })

export const cornersOf = ({ x, y, width, height }: Rect): readonly Point[] => [
  { x, y },
  { x: x + width, y },
  { x: x + width, y: y + height },
  { x, y: y + height }
]

export const distance = (from: Point, to: Point): number => Math.hypot(to.x - from.x, to.y - from.y)

export const toCentimetres = (metres: number): number => Math.round(metres * 100) / 100
