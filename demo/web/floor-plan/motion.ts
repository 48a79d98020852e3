import { distance, type Point } from './plan.js'

interface Track {
  /** Where the marker is. The same object all the time, so that a frame makes none. */
  readonly place: { x: number; y: number }
  from: Point
  to: Point
  startMs: number
  durationMs: number
}

const MIN_DURATION_MS = 100
const MAX_DURATION_MS = 4000
// A batch that comes a little late must not make everybody stop and start again.
const SLACK = 1.15
/** Nobody walks this far between two batches, in metres: who seems to, was lost in between. */
const JUMP = 15

/**
 * Where everybody is between two batches. A marker takes as long to its new place as the news of it took to come, so
 * that somebody who walks steadily is seen to walk steadily, one batch late.
 */
export class Motion {
  readonly #tracks = new Map<string, Track>()

  moveTo(id: string, to: Point, nowMs: number): void {
    const track = this.#tracks.get(id)
    if (track === undefined) {
      this.#tracks.set(id, { place: { ...to }, from: to, to, startMs: nowMs, durationMs: MIN_DURATION_MS })
      return
    }
    move(track, nowMs)
    const { place } = track
    const jumps = distance(place, to) > JUMP
    track.from = jumps ? to : { ...place }
    track.to = to
    track.durationMs = Math.min(Math.max((nowMs - track.startMs) * SLACK, MIN_DURATION_MS), MAX_DURATION_MS)
    track.startMs = nowMs
  }

  /** Moves everybody to where they are at this time. */
  advance(nowMs: number): void {
    for (const track of this.#tracks.values()) move(track, nowMs)
  }

  /** As of the last `advance`, which changes it; undefined for somebody who is not here. */
  placeOf(id: string): Point | undefined {
    return this.#tracks.get(id)?.place
  }

  clear(): void {
    this.#tracks.clear()
  }
}

const move = ({ place, from, to, startMs, durationMs }: Track, nowMs: number): void => {
  const part = Math.min(Math.max((nowMs - startMs) / durationMs, 0), 1)
  place.x = from.x + (to.x - from.x) * part
  place.y = from.y + (to.y - from.y) * part
}
