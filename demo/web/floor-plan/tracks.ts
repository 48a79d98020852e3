import type { FloorTracks, Track, TrackPoint } from '../types.js'
import { isPerson, type Marker } from './marker.js'
import type { Point } from './plan.js'

// Past positions on a floor. A transmitter has several tracks if it was elsewhere or silent between them.

/** A transmitter reports at least once a minute: over a longer gap, its way is not known. */
const MAX_GAP_MS = 75_000

const partAt = ([startMs]: TrackPoint, [endMs]: TrackPoint, ms: number): number =>
  endMs > startMs ? (ms - startMs) / (endMs - startMs) : 1

const isKnownWay = ([startMs]: TrackPoint, [endMs]: TrackPoint): boolean => endMs - startMs <= MAX_GAP_MS

type MovingMarker = Omit<Marker, 'position' | 'zoneId'> & {
  zoneId: string | null
  readonly position: { x: number; y: number }
}

/** The markers of a floor at a past time. */
export class PastFloor {
  readonly #tracks: readonly Track[]
  readonly #fromMs: number
  readonly #describe: (id: string) => Pick<Marker, 'name' | 'kind'>
  readonly #markers = new Map<Track, MovingMarker>()

  constructor({ from, tracks }: FloorTracks, describe: (id: string) => Pick<Marker, 'name' | 'kind'>) {
    // People are drawn above assets.
    const layerOf = ({ transmitterId }: Track): number => Number(isPerson(describe(transmitterId).kind))
    this.#tracks = tracks.toSorted((one, other) => layerOf(one) - layerOf(other))
    this.#fromMs = Date.parse(from)
    this.#describe = describe
  }

  /** A new list of the current markers, whose positions then change with `seek`. */
  get markers(): readonly Marker[] {
    return [...this.#markers.values()]
  }

  /** Moves the markers to their positions at this time. A marker whose way is not known stays until it arrives. */
  seek(atMs: number): void {
    const ms = atMs - this.#fromMs
    for (const track of this.#tracks) {
      const { points } = track
      const index = points.findLastIndex(([startMs]) => startMs <= ms)
      const [start, next] = [points[index], points[index + 1]]
      if (start === undefined || (next === undefined && ms > start[0])) {
        this.#markers.delete(track)
        continue
      }
      const marker = this.#markers.get(track) ?? this.#add(track)
      const part = next && isKnownWay(start, next) ? partAt(start, next, ms) : 0
      marker.zoneId = start[3]
      marker.position.x = start[1] + ((next?.[1] ?? 0) - start[1]) * part
      marker.position.y = start[2] + ((next?.[2] ?? 0) - start[2]) * part
    }
  }

  #add(track: Track): MovingMarker {
    const { transmitterId: id } = track
    const base = { ageMs: 0, isStale: false, zoneId: null }
    const marker: MovingMarker = { id, ...this.#describe(id), ...base, position: { x: 0, y: 0 } }
    this.#markers.set(track, marker)
    return marker
  }
}

/** A straight part of the recent way of a transmitter. `age` is from 0 now to 1 at the start of the trail. */
export interface TrailLine {
  readonly from: Point
  readonly to: Point
  readonly age: number
}

/** The way of one transmitter in the time before a moment. */
export const trailOf = (
  { from, tracks }: FloorTracks,
  transmitterId: string,
  atMs: number,
  durationMs: number
): readonly TrailLine[] => {
  const toMs = atMs - Date.parse(from)
  return tracks
    .filter((track) => track.transmitterId === transmitterId)
    .flatMap(({ points }) =>
      points.flatMap((start, index): TrailLine[] => {
        const end = points[index + 1]
        if (!end || start[0] >= toMs || !isKnownWay(start, end)) return []
        const part = Math.min(partAt(start, end, toMs), 1)
        const to = { x: start[1] + (end[1] - start[1]) * part, y: start[2] + (end[2] - start[2]) * part }
        return [{ from: { x: start[1], y: start[2] }, to, age: Math.min((toMs - start[0]) / durationMs, 1) }]
      })
    )
}
