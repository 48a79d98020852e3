// Geometry of a floor, in metres. This folder does not use browser APIs.

export interface Point {
  readonly x: number
  readonly y: number
}

export interface Size {
  readonly width: number
  readonly height: number
}

export interface Placed {
  readonly id: string
  readonly position: Point
}

export const distance = (from: Point, to: Point): number => Math.hypot(to.x - from.x, to.y - from.y)

/** The bounding box of a zone, which positions its label. */
export const boxAround = (polygon: readonly Point[]): Point & Size => {
  const xs = polygon.map(({ x }) => x)
  const ys = polygon.map(({ y }) => y)
  const x = Math.min(...xs)
  const y = Math.min(...ys)
  return { x, y, width: Math.max(...xs) - x, height: Math.max(...ys) - y }
}

/** The nearest item within `reach`; undefined if there is none. */
export const nearest = <Item extends Placed>(items: readonly Item[], point: Point, reach: number): Item | undefined => {
  const away = ({ position }: Item): number => distance(position, point)
  return items.filter((item) => away(item) <= reach).sort((one, other) => away(one) - away(other))[0]
}
