import type { Point } from '../floor-plan/plan.js'
import { crossesWall } from '../floor-plan/walls.js'
import type { FloorContext, TrackPoint } from '../types.js'

export type Walls = FloorContext['walls']

/** Paths are recorded at least this often; a thinned history has longer gaps. */
const RECORDED_MS = 75_000

/** The index of the last point at or before this time; -1 if all are later. */
export const indexAt = (points: readonly TrackPoint[], ms: number): number => {
  let [low, high] = [0, points.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((points[middle]?.[0] ?? 0) <= ms) low = middle + 1
    else high = middle
  }
  return low - 1
}

/** The position on a straight way between two points at this time. */
export const between = ([startMs, startX, startY]: TrackPoint, [endMs, endX, endY]: TrackPoint, ms: number): Point => {
  const part = endMs > startMs ? (ms - startMs) / (endMs - startMs) : 1
  return { x: startX + (endX - startX) * part, y: startY + (endY - startY) * part }
}

/** Whether a transmitter went straight from one stored position to the next. Otherwise only the two positions are known. */
export const isKnownWay = (
  [startMs, startX, startY]: TrackPoint,
  [endMs, endX, endY]: TrackPoint,
  walls: Walls
): boolean => endMs - startMs <= RECORDED_MS && !crossesWall({ x: startX, y: startY }, { x: endX, y: endY }, walls)
