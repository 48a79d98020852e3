import type { PositionEntry } from '../../../schemas/realtime.js'

/**
 * A stored position, which holds until the next one. Between two of them that are at most `MAX_INTERVAL_MS` apart, a
 * transmitter on the same floor moves in a straight line.
 */
export interface PathPoint {
  readonly transmitterId: string
  /** Null from the time on at which the transmitter is not heard anywhere. */
  readonly floorId: string | null
  readonly zoneId: string | null
  readonly x: number
  readonly y: number
  readonly atMs: number
}

/** A transmitter that is present has at least one stored position per interval, until the history is thinned. */
export const MAX_INTERVAL_MS = 60_000
/** The maximum distance between a position and the predicted one, in metres. */
const TOLERANCE = 0.15

/** The last stored point, and the straight movement from it. */
interface Path {
  start: PathPoint
  /** Metres per millisecond, from `start` to the point after it. */
  velocity: { readonly x: number; readonly y: number } | null
  newest: PathPoint
}

/**
 * Reduces the positions of every second to the points that are needed to draw the paths: bends, pauses, and changes of zone
 * and floor. A point is stored when the next one is not where the movement since the last stored point predicts it (dead
 * reckoning). That is an eighth of the positions, while a fixed interval of eight seconds would cut the corners of rooms.
 */
export class PathRecorder {
  readonly #paths = new Map<string, Path>()

  /** Adds the positions of all present transmitters. Returns the points to store. */
  add(positions: readonly PositionEntry[], atMs: number): PathPoint[] {
    const present = new Set<string>()
    const stored: PathPoint[] = []
    for (const position of positions) {
      const point = pointOf(position, atMs)
      present.add(point.transmitterId)
      this.#extend(point, stored)
    }
    for (const [id, { start, newest }] of this.#paths) {
      if (present.has(id)) continue
      if (newest !== start) stored.push(newest)
      stored.push({ ...newest, floorId: null, zoneId: null, atMs })
      this.#paths.delete(id)
    }
    return stored
  }

  #extend(point: PathPoint, stored: PathPoint[]): void {
    const path = this.#paths.get(point.transmitterId)
    if (path === undefined) {
      this.#paths.set(point.transmitterId, { start: point, velocity: null, newest: point })
      stored.push(point)
      return
    }
    const { newest } = path
    const restartAt = (start: PathPoint): void => {
      if (start !== path.start) stored.push(start)
      path.start = start
      path.velocity = null
    }
    const changesFloor = point.floorId !== newest.floorId
    if (changesFloor || !isPredicted(path, point)) restartAt(newest)
    path.newest = point
    if (changesFloor || point.zoneId !== newest.zoneId || point.atMs - path.start.atMs >= MAX_INTERVAL_MS)
      restartAt(point)
    else path.velocity ??= velocityBetween(path.start, point)
  }
}

const pointOf = ({ transmitterId, floorId, zoneId, position }: PositionEntry, atMs: number): PathPoint => ({
  transmitterId: String(transmitterId),
  floorId: String(floorId),
  zoneId: zoneId == null ? null : String(zoneId),
  x: position.x,
  y: position.y,
  atMs
})

const velocityBetween = (start: PathPoint, end: PathPoint): Path['velocity'] => {
  const ms = end.atMs - start.atMs
  return ms > 0 ? { x: (end.x - start.x) / ms, y: (end.y - start.y) / ms } : null
}

const isPredicted = ({ start, velocity }: Path, { x, y, atMs }: PathPoint): boolean => {
  if (velocity === null) return true
  const ms = atMs - start.atMs
  const offX = start.x + velocity.x * ms - x
  const offY = start.y + velocity.y * ms - y
  return offX * offX + offY * offY <= TOLERANCE * TOLERANCE
}
