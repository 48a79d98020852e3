import { distance, type Point } from './plan.js'

interface Track {
  /** The current position. Updated in place, so that a frame allocates no objects. */
  readonly position: { x: number; y: number }
  from: Point
  to: Point
  startMs: number
  durationMs: number
}

const MIN_DURATION_MS = 100
const MAX_DURATION_MS = 4000
// Allows for late batches, so that markers do not stop and start.
const SLACK = 1.15
/** In metres. A longer distance between two batches is shown as a jump, because updates were missed. */
const JUMP = 15

/**
 * Interpolates positions between batches. A marker moves to its new position in the time between its last two updates, so
 * a steady walk looks steady, one batch late.
 */
export class Motion {
  readonly #tracks = new Map<string, Track>()

  moveTo(id: string, to: Point, nowMs: number): void {
    const track = this.#tracks.get(id)
    if (track === undefined) {
      this.#tracks.set(id, { position: { ...to }, from: to, to, startMs: nowMs, durationMs: MIN_DURATION_MS })
      return
    }
    move(track, nowMs)
    const { position } = track
    const jumps = distance(position, to) > JUMP
    track.from = jumps ? to : { ...position }
    track.to = to
    track.durationMs = Math.min(Math.max((nowMs - track.startMs) * SLACK, MIN_DURATION_MS), MAX_DURATION_MS)
    track.startMs = nowMs
  }

  /** Moves all markers to their positions at this time. */
  advance(nowMs: number): void {
    for (const track of this.#tracks.values()) move(track, nowMs)
  }

  /** The live position object, which `advance` changes; undefined for an unknown marker. */
  positionOf(id: string): Point | undefined {
    return this.#tracks.get(id)?.position
  }

  clear(): void {
    this.#tracks.clear()
  }
}

const move = ({ position, from, to, startMs, durationMs }: Track, nowMs: number): void => {
  const part = Math.min(Math.max((nowMs - startMs) / durationMs, 0), 1)
  position.x = from.x + (to.x - from.x) * part
  position.y = from.y + (to.y - from.y) * part
}
