import type { PositionEntry } from '../../../schemas/realtime.js'

// The positions of the last 15 minutes, in memory.

export const HISTORY_MS = 15 * 60_000

/** A position. Between two of them on one floor, a transmitter moves in a straight line. */
export interface PathPoint {
  readonly atMs: number
  /** Null while the transmitter is not heard anywhere. */
  readonly floorId: string | null
  readonly zoneId: string | null
  readonly x: number
  readonly y: number
}

/** A position with the time until which the transmitter stayed there: most of them rest most of the time. */
interface Stay extends PathPoint {
  untilMs: number
}

/** Milliseconds after the start of the range, x, y, and the zone. */
export type TrackPoint = readonly [number, number, number, string | null]

/** The path of one transmitter while it was on a floor. A transmitter that came back has several tracks. */
export interface Track {
  readonly transmitterId: string
  readonly points: readonly TrackPoint[]
}

export class PositionHistory {
  readonly #stays = new Map<string, Stay[]>()

  /** Adds the positions of all present transmitters. */
  add(positions: readonly PositionEntry[], atMs: number): void {
    const heard = new Set<string>()
    for (const { transmitterId, floorId, zoneId, position } of positions) {
      heard.add(String(transmitterId))
      const place = {
        floorId: String(floorId),
        zoneId: zoneId == null ? null : String(zoneId),
        x: position.x,
        y: position.y
      }
      this.#extend(String(transmitterId), { ...place, atMs, untilMs: atMs })
    }
    for (const [id, stays] of this.#stays) {
      const last = stays.at(-1)
      if (last && !heard.has(id)) this.#extend(id, { ...last, floorId: null, zoneId: null, atMs, untilMs: atMs })
      // One position before the time stays, because it holds at that time.
      while (stays[1] && stays[1].atMs <= atMs - HISTORY_MS) stays.shift()
      if (stays[0]?.floorId === null && stays.length === 1) this.#stays.delete(id)
    }
  }

  #extend(id: string, stay: Stay): void {
    const stays = this.#stays.get(id)
    const last = stays?.at(-1)
    if (stays === undefined || last === undefined) this.#stays.set(id, [stay])
    else if (isSamePlace(last, stay)) last.untilMs = stay.untilMs
    else stays.push(stay)
  }

  /** All kept positions of a transmitter: the start and the end of every stay. */
  pathOf(transmitterId: string): readonly PathPoint[] {
    return (this.#stays.get(transmitterId) ?? []).flatMap(({ untilMs, ...start }) =>
      untilMs > start.atMs ? [start, { ...start, atMs: untilMs }] : [start]
    )
  }

  transmitterIds(): readonly string[] {
    return [...this.#stays.keys()]
  }

  /** The floor on which the transmitter was heard last at a time; null if that is not known. */
  floorAt(transmitterId: string, atMs: number): string | null {
    const stays = this.#stays.get(transmitterId) ?? []
    return stays.findLast((stay) => stay.atMs <= atMs && stay.floorId !== null)?.floorId ?? null
  }

  /** The tracks on a floor. The last position holds until the end of the range. */
  tracks(floorId: string, fromMs: number, toMs: number): Track[] {
    return this.transmitterIds().flatMap((transmitterId) => {
      const path = this.pathOf(transmitterId)
      const first = path.findLastIndex(({ atMs }) => atMs <= fromMs)
      const inRange = path.slice(Math.max(first, 0)).filter(({ atMs }) => atMs <= toMs)
      return tracksOf(inRange, floorId, fromMs, toMs).map((points) => ({ transmitterId, points }))
    })
  }
}

const isSamePlace = (one: PathPoint, other: PathPoint): boolean =>
  one.x === other.x && one.y === other.y && one.floorId === other.floorId && one.zoneId === other.zoneId

/** Divides a path where it left the floor. */
const tracksOf = (path: readonly PathPoint[], floorId: string, fromMs: number, toMs: number): TrackPoint[][] => {
  const tracks: TrackPoint[][] = []
  let current: TrackPoint[] | null = null
  const endAt = (ms: number): void => {
    const [lastMs, x, y, zoneId] = current?.at(-1) ?? [ms, 0, 0, null]
    if (ms > lastMs) current?.push([ms, x, y, zoneId])
    current = null
  }
  for (const { atMs, x, y, zoneId, ...point } of path) {
    if (point.floorId !== floorId) {
      endAt(atMs - fromMs)
      continue
    }
    if (current === null) {
      current = []
      tracks.push(current)
    }
    current.push([atMs - fromMs, x, y, zoneId])
  }
  endAt(toMs - fromMs)
  return tracks
}
