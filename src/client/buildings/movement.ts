export interface Point {
  readonly x: number
  readonly y: number
}

interface Track {
  /** The drawn position. Updated in place, so that a frame allocates no objects. */
  readonly position: { x: number; y: number }
  from: Point
  to: Point
  startMs: number
  endMs: number
  updatedMs: number
  /** When the marker should be at its latest position. */
  dueMs: number
}

const MIN_DURATION_MS = 100
const MAX_DURATION_MS = 4000
/** Allows for late batches, so that markers do not stop and start. */
const SLACK = 1.15

/**
 * Smooth movement of markers between batches: positions go in with `moveTo`, `positionOf` returns where to draw. A marker
 * moves to its new position in the time between its last two updates, so a steady walk looks steady, one batch late. It
 * never jumps: after a gap it moves to its new position in a few seconds, also if missed positions arrive all at once.
 * Times are milliseconds of any steady clock, such as `performance.now()`.
 */
export class Movement {
  readonly #tracks = new Map<string, Track>()
  readonly #moving = new Set<Track>()

  /** Whether a marker has not reached its position. Otherwise the next frame equals the last one. */
  get isMoving(): boolean {
    return this.#moving.size > 0
  }

  /** A new marker appears at its position. */
  moveTo(id: string, to: Point, nowMs: number): void {
    const track = this.#tracks.get(id)
    if (track === undefined) {
      const position = { x: to.x, y: to.y }
      this.#tracks.set(id, { position, from: to, to, startMs: nowMs, endMs: nowMs, updatedMs: nowMs, dueMs: nowMs })
      return
    }
    const sinceMs = nowMs - track.updatedMs
    track.updatedMs = nowMs
    // Updates that arrive together are due at the same time.
    track.dueMs =
      sinceMs < MIN_DURATION_MS
        ? Math.max(track.dueMs, nowMs + MIN_DURATION_MS)
        : nowMs + Math.min(sinceMs * SLACK, MAX_DURATION_MS)
    if (to.x === track.to.x && to.y === track.to.y) return
    place(track, nowMs)
    track.from = { ...track.position }
    track.to = to
    track.startMs = nowMs
    track.endMs = track.dueMs
    this.#moving.add(track)
  }

  /** Moves the markers to their positions at this time. Markers that do not move cost nothing. */
  advance(nowMs: number): void {
    for (const track of this.#moving) {
      place(track, nowMs)
      if (nowMs >= track.endMs) this.#moving.delete(track)
    }
  }

  /** The live position object, which `advance` changes; undefined for an unknown marker. */
  positionOf(id: string): Point | undefined {
    return this.#tracks.get(id)?.position
  }

  remove(id: string): void {
    const track = this.#tracks.get(id)
    if (track === undefined) return
    this.#tracks.delete(id)
    this.#moving.delete(track)
  }

  clear(): void {
    this.#tracks.clear()
    this.#moving.clear()
  }
}

const place = ({ position, from, to, startMs, endMs }: Track, nowMs: number): void => {
  if (nowMs >= endMs) {
    position.x = to.x
    position.y = to.y
    return
  }
  const part = Math.max((nowMs - startMs) / (endMs - startMs), 0)
  position.x = from.x + (to.x - from.x) * part
  position.y = from.y + (to.y - from.y) * part
}
