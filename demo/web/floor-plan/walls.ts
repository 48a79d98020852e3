import type { FloorContext } from '../types.js'
import type { Point } from './plan.js'

type Walls = FloorContext['walls']

/** The side of the line from `a` to `b` on which a point is: positive, negative, or zero on the line. */
const sideOf = (ax: number, ay: number, bx: number, by: number, { x, y }: Point): number =>
  (bx - ax) * (y - ay) - (by - ay) * (x - ax)

/** Whether a straight line crosses a wall. Walls end at doors, so a line through a door crosses none. */
export const crossesWall = (from: Point, to: Point, walls: Walls): boolean =>
  walls.some(([x1, y1, x2, y2]) => {
    const start = sideOf(x1, y1, x2, y2, from)
    const end = sideOf(x1, y1, x2, y2, to)
    if (start * end >= 0) return false
    const first = sideOf(from.x, from.y, to.x, to.y, { x: x1, y: y1 })
    const second = sideOf(from.x, from.y, to.x, to.y, { x: x2, y: y2 })
    return first * second <= 0
  })
