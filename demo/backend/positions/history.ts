import type { PositionEntry } from '../../../schemas/realtime.js'

// The positions of the last 15 minutes, in memory.

export const HISTORY_MS = 15 * 60_000

/** A kept position, which holds until the next one. Between two of them, a transmitter on one floor moves in a straight line. */
export interface PathPoint {
  readonly atMs: number
  /** Null from the time on at which the transmitter is not heard anywhere. */
  readonly floorId: string | null
  readonly zoneId: string | null
  readonly x: number
  readonly y: number
}

/** A transmitter that is present has at least one kept position in this time. */
const MAX_INTERVAL_MS = 60_000
/** The maximum distance between a position and the predicted one, in metres. */
const TOLERANCE = 0.15

interface Path {
  /** In order of time. */
  readonly points: PathPoint[]
  /** The movement since the last of them in metres per millisecond; null until a second position is known. */
  velocity: { readonly x: number; readonly y: number } | null
  newest: PathPoint
  /** The time until which it is at the newest point. */
  untilMs: number
}

/** Milliseconds after the start of the range, x, y, and the zone. */
export type TrackPoint = readonly [number, number, number, string | null]

/** The path of one transmitter while it was on a floor. A transmitter that came back has several tracks. */
export interface Track {
  readonly transmitterId: string
  readonly points: readonly TrackPoint[]
}

/**
 * Keeps the bends, pauses and changes of zone and floor of every path: a point is kept when the next one is not where the
 * movement since the last kept point predicts it (dead reckoning). That is an eighth of all positions.
 */
export class PositionHistory {
  readonly #paths = new Map<string, Path>()

  /** Adds the positions of all present transmitters. */
  add(positions: readonly PositionEntry[], atMs: number): void {
    for (const { transmitterId, floorId, zoneId, position } of positions)
      this.#extend(String(transmitterId), position, String(floorId), zoneId == null ? null : String(zoneId), atMs)
    for (const [id, path] of this.#paths) {
      // Not heard at this time.
      if (path.untilMs !== atMs && path.newest.floorId !== null) {
        keep(path, atEnd(path))
        keep(path, { ...path.newest, floorId: null, zoneId: null, atMs })
      }
      this.#prune(id, path, atMs - HISTORY_MS)
    }
  }

  #extend(id: string, { x, y }: PositionEntry['position'], floorId: string, zoneId: string | null, atMs: number): void {
    const path = this.#paths.get(id)
    const last = path?.newest
    const start = path?.points.at(-1)
    if (path === undefined || last === undefined || start === undefined) {
      const first = { atMs, floorId, zoneId, x, y }
      this.#paths.set(id, { points: [first], velocity: null, newest: first, untilMs: atMs })
      return
    }
    const isResting = last.x === x && last.y === y && last.zoneId === zoneId && last.floorId === floorId
    // Most of them rest most of the time.
    if (isResting && isStill(path) && atMs - start.atMs < MAX_INTERVAL_MS) {
      path.untilMs = atMs
      return
    }
    const point = { atMs, floorId, zoneId, x, y }
    const changesFloor = floorId !== last.floorId
    const hasRested = path.untilMs > last.atMs
    if (changesFloor || hasRested || !isPredicted(path, point)) keep(path, atEnd(path))
    const from = path.points.at(-1) ?? point
    if (changesFloor || zoneId !== last.zoneId || atMs - from.atMs >= MAX_INTERVAL_MS) keep(path, point)
    else path.velocity ??= velocityBetween(from, point)
    path.newest = point
    path.untilMs = atMs
  }

  /** One position before the time stays, because it holds at that time. */
  #prune(id: string, { points, newest }: Path, beforeMs: number): void {
    const first = points.findIndex(({ atMs }) => atMs > beforeMs)
    if (first > 1) points.splice(0, first - 1)
    if (newest.floorId === null && newest.atMs < beforeMs) this.#paths.delete(id)
  }

  /** All kept positions of a transmitter, and the newest one. */
  pathOf(transmitterId: string): readonly PathPoint[] {
    const path = this.#paths.get(transmitterId)
    if (path === undefined) return []
    const newest = atEnd(path)
    return path.points.at(-1) === newest ? path.points : [...path.points, newest]
  }

  transmitterIds(): readonly string[] {
    return [...this.#paths.keys()]
  }

  /** Where the transmitter was heard last at a time; null if that is not known. */
  placeAt(transmitterId: string, atMs: number): PathPoint | null {
    return this.pathOf(transmitterId).findLast((point) => point.atMs <= atMs && point.floorId !== null) ?? null
  }

  /** The tracks on a floor. The last position holds until the end of the range. */
  tracks(floorId: string, fromMs: number, toMs: number): Track[] {
    return this.transmitterIds().flatMap((transmitterId) => {
      const path = this.pathOf(transmitterId)
      const first = Math.max(
        path.findLastIndex(({ atMs }) => atMs <= fromMs),
        0
      )
      const inRange = path.slice(first).filter(({ atMs }) => atMs <= toMs)
      return tracksOf(inRange, floorId, fromMs, toMs).map((points) => ({ transmitterId, points }))
    })
  }
}

/** Divides a path where it left the floor. */
const tracksOf = (path: readonly PathPoint[], floorId: string, fromMs: number, toMs: number): TrackPoint[][] => {
  const tracks: TrackPoint[][] = []
  let current: TrackPoint[] | null = null
  const endAt = (ms: number): void => {
    const [lastMs, x, y, zoneId] = current?.at(-1) ?? [ms, 0, 0, null]
    if (ms > lastMs) current?.push([ms, x, y, zoneId])
    current = null
  }
  for (const point of path) {
    const ms = point.atMs - fromMs
    if (point.floorId !== floorId) {
      endAt(ms)
      continue
    }
    if (current === null) {
      current = []
      tracks.push(current)
    }
    current.push([ms, point.x, point.y, point.zoneId])
  }
  endAt(toMs - fromMs)
  return tracks
}

const atEnd = ({ newest, untilMs }: Path): PathPoint =>
  newest.atMs === untilMs ? newest : { ...newest, atMs: untilMs }

const isStill = ({ velocity }: Path): boolean => velocity === null || (velocity.x === 0 && velocity.y === 0)

/** The movement begins anew at this point. */
const keep = (path: Path, point: PathPoint): void => {
  if (path.points.at(-1) !== point) path.points.push(point)
  path.velocity = null
  path.newest = point
  path.untilMs = point.atMs
}

const velocityBetween = (start: PathPoint, end: PathPoint): Path['velocity'] => {
  const ms = end.atMs - start.atMs
  return ms > 0 ? { x: (end.x - start.x) / ms, y: (end.y - start.y) / ms } : null
}

const isPredicted = ({ points, velocity }: Path, { x, y, atMs }: PathPoint): boolean => {
  const start = points.at(-1)
  if (velocity === null || start === undefined) return true
  const ms = atMs - start.atMs
  return Math.hypot(start.x + velocity.x * ms - x, start.y + velocity.y * ms - y) <= TOLERANCE
}
