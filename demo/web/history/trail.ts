import { distance, type Point } from '../floor-plan/plan.js'
import type { Trail, TrailLine } from '../floor-plan/trail-layer.js'
import type { Track, TrackPoint } from '../types.js'
import { between, indexAt, isKnownWay, type Walls } from './ways.js'

/** Current positions are a little older than the request for them. */
const STILL_THERE_MS = 15_000
/** Shorter lines are not visible. */
const MIN_METRES = 0.05

/**
 * The path of one transmitter between two times. Its tracks are separate, because it was elsewhere or silent between them.
 * Within a track, the way is not known where a straight line crosses a wall or takes longer than the interval of positions.
 */
export const trailOf = (tracks: readonly Track[], fromMs: number, toMs: number, walls: Walls): Trail => {
  const lineOf = (start: TrackPoint, end: TrackPoint): TrailLine | null => {
    if (end[0] <= fromMs || start[0] >= toMs) return null
    const isKnown = isKnownWay(start, end, walls)
    // It has not arrived yet.
    if (!isKnown && end[0] > toMs) return null
    const [firstMs, lastMs] = isKnown ? [Math.max(start[0], fromMs), Math.min(end[0], toMs)] : [start[0], end[0]]
    const [from, to] = [between(start, end, firstMs), between(start, end, lastMs)]
    const part = ((Math.max(firstMs, fromMs) + lastMs) / 2 - fromMs) / (toMs - fromMs)
    return distance(from, to) < MIN_METRES ? null : { from, to, part, isKnown }
  }
  const lines = tracks.flatMap(({ points }) =>
    points.flatMap((start, index) => {
      const end = points[index + 1]
      return (end && lineOf(start, end)) ?? []
    })
  )
  return { lines, last: tracks.reduce<Point | null>((found, track) => positionIn(track, toMs, walls) ?? found, null) }
}

/** The position of a transmitter at the end of its trail; null if it was not there any more. */
const positionIn = ({ points }: Track, toMs: number, walls: Walls): Point | null => {
  const [start, end] = [points[indexAt(points, toMs)], points[indexAt(points, toMs) + 1]]
  if (start === undefined || (end === undefined && start[0] < toMs - STILL_THERE_MS)) return null
  return end && isKnownWay(start, end, walls) ? between(start, end, toMs) : { x: start[1], y: start[2] }
}
