import { isPerson, type Marker } from '../floor-plan/marker.js'
import type { Track } from '../types.js'
import { between, indexAt, isKnownWay, type Walls } from './ways.js'

const isPresent = ({ points }: Track, ms: number): boolean =>
  ms >= (points[0]?.[0] ?? Number.POSITIVE_INFINITY) && ms <= (points.at(-1)?.[0] ?? Number.NEGATIVE_INFINITY)

interface MovingMarker extends Omit<Marker, 'position' | 'zoneId'> {
  zoneId: string | null
  readonly position: { x: number; y: number }
  /** The stored position that the marker comes from, and whether the way to the next one is known. */
  index: number
  isKnown: boolean
}

/** Past positions on a floor as markers. */
export class Playback {
  readonly #tracks: readonly Track[]
  readonly #describe: (id: string) => Pick<Marker, 'name' | 'kind'>
  readonly #walls: Walls
  readonly #markers = new Map<Track, MovingMarker>()

  constructor(tracks: readonly Track[], walls: Walls, describe: (id: string) => Pick<Marker, 'name' | 'kind'>) {
    // People are drawn above assets.
    const layerOf = ({ transmitterId }: Track): number => Number(isPerson(describe(transmitterId).kind))
    this.#tracks = tracks.toSorted((one, other) => layerOf(one) - layerOf(other))
    this.#walls = walls
    this.#describe = describe
  }

  /** A new list of the current markers, whose positions then change with `seek`. */
  get markers(): readonly Marker[] {
    return [...this.#markers.values()]
  }

  /** Moves the markers to their positions at this time. A marker whose way is not known stays until it arrives. */
  seek(ms: number): void {
    for (const track of this.#tracks) {
      const index = isPresent(track, ms) ? indexAt(track.points, ms) : -1
      const start = track.points[index]
      if (start === undefined) {
        this.#markers.delete(track)
        continue
      }
      const marker = this.#markers.get(track) ?? this.#add(track)
      const end = track.points[index + 1] ?? start
      if (marker.index !== index) Object.assign(marker, { index, isKnown: isKnownWay(start, end, this.#walls) })
      marker.zoneId = start[3]
      Object.assign(marker.position, between(start, marker.isKnown ? end : start, ms))
    }
  }

  #add(track: Track): MovingMarker {
    const { transmitterId: id } = track
    const marker: MovingMarker = {
      id,
      ...this.#describe(id),
      zoneId: null,
      ageMs: 0,
      isStale: false,
      accuracy: null,
      position: { x: 0, y: 0 },
      index: -1,
      isKnown: false
    }
    this.#markers.set(track, marker)
    return marker
  }
}
