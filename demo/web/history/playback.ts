import { isPerson, type Marker } from '../floor-plan/marker.js'
import type { Point } from '../floor-plan/plan.js'
import type { Trail } from '../floor-plan/trail-layer.js'
import type { Track, TrackPoint } from '../types.js'

/** The index of the last point at or before this time; -1 if all are later. */
const indexAt = (points: readonly TrackPoint[], ms: number): number => {
  let [low, high] = [0, points.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((points[middle]?.[0] ?? 0) <= ms) low = middle + 1
    else high = middle
  }
  return low - 1
}

/** The position between two points at this time. */
const between = ([startMs, startX, startY]: TrackPoint, [endMs, endX, endY]: TrackPoint, ms: number): Point => {
  const part = endMs > startMs ? (ms - startMs) / (endMs - startMs) : 1
  return { x: startX + (endX - startX) * part, y: startY + (endY - startY) * part }
}

const isPresent = ({ points }: Track, ms: number): boolean =>
  ms >= (points[0]?.[0] ?? Number.POSITIVE_INFINITY) && ms <= (points.at(-1)?.[0] ?? Number.NEGATIVE_INFINITY)

/** The paths between two times. */
export const trailsOf = (tracks: readonly Track[], fromMs: number, toMs: number): readonly Trail[] =>
  tracks.flatMap(({ transmitterId, points }) => {
    const [first, last] = [indexAt(points, fromMs), indexAt(points, toMs)]
    const ends = (index: number, ms: number): readonly Point[] => {
      const [start, end] = [points[index], points[index + 1]]
      return start && end ? [between(start, end, ms)] : []
    }
    const middle = points.slice(first + 1, last + 1).map(([, x, y]) => ({ x, y }))
    const trail = [...ends(first, fromMs), ...middle, ...ends(last, toMs)]
    return trail.length > 1 ? [{ id: transmitterId, points: trail }] : []
  })

type MovingMarker = Omit<Marker, 'position' | 'zoneId'> & {
  zoneId: string | null
  readonly position: { x: number; y: number }
}

/** Past positions on a floor as markers. */
export class Playback {
  readonly #tracks: readonly Track[]
  readonly #describe: (id: string) => Pick<Marker, 'name' | 'kind'>
  readonly #markers = new Map<Track, MovingMarker>()

  constructor(tracks: readonly Track[], describe: (id: string) => Pick<Marker, 'name' | 'kind'>) {
    // People are drawn above assets.
    const layerOf = ({ transmitterId }: Track): number => Number(isPerson(describe(transmitterId).kind))
    this.#tracks = tracks.toSorted((one, other) => layerOf(one) - layerOf(other))
    this.#describe = describe
  }

  /** A new list of the current markers, whose positions then change with `seek`. */
  get markers(): readonly Marker[] {
    return [...this.#markers.values()]
  }

  seek(ms: number): void {
    for (const track of this.#tracks) {
      const index = isPresent(track, ms) ? indexAt(track.points, ms) : -1
      const start = track.points[index]
      if (start === undefined) {
        this.#markers.delete(track)
        continue
      }
      const marker = this.#markers.get(track) ?? this.#add(track)
      marker.zoneId = start[3]
      Object.assign(marker.position, between(start, track.points[index + 1] ?? start, ms))
    }
  }

  #add(track: Track): MovingMarker {
    const { transmitterId: id } = track
    const marker = { id, ...this.#describe(id), zoneId: null, ageMs: 0, isStale: false, position: { x: 0, y: 0 } }
    this.#markers.set(track, marker)
    return marker
  }
}
