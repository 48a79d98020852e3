import type { Point } from './plan.js'

interface Track {
  readonly from: Point
  readonly to: Point
  readonly startMs: number
  readonly durationMs: number
}

const FIRST_DURATION_MS = 1000
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
    const from = track === undefined ? to : placeOn(track, nowMs)
    const jumps = Math.hypot(to.x - from.x, to.y - from.y) > JUMP
    const sinceLast = track === undefined ? FIRST_DURATION_MS : nowMs - track.startMs
    this.#tracks.set(id, {
      from: jumps ? to : from,
      to,
      startMs: nowMs,
      durationMs: Math.min(Math.max(sinceLast * SLACK, MIN_DURATION_MS), MAX_DURATION_MS)
    })
  }

  /** Undefined for somebody who is not here. */
  at(id: string, nowMs: number): Point | undefined {
    const track = this.#tracks.get(id)
    return track && placeOn(track, nowMs)
  }

  forget(id: string): void {
    this.#tracks.delete(id)
  }

  clear(): void {
    this.#tracks.clear()
  }

  get size(): number {
    return this.#tracks.size
  }

  isStill(nowMs: number): boolean {
    for (const { startMs, durationMs } of this.#tracks.values()) if (nowMs < startMs + durationMs) return false
    return true
  }
}

const placeOn = ({ from, to, startMs, durationMs }: Track, nowMs: number): Point => {
  const part = Math.min(Math.max((nowMs - startMs) / durationMs, 0), 1)
  return { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part }
}
