import { distance } from '../site/geometry.js'
import type { Waypoint } from './routes.js'

/** Somebody or something that carries a transmitter: on the way, or at rest. */
export class Walker {
  readonly id: string
  readonly speed: number
  #place: Waypoint
  #way: readonly Waypoint[] = []
  #restMs = 0

  constructor(id: string, speed: number, place: Waypoint) {
    this.id = id
    this.speed = speed
    this.#place = place
  }

  get place(): Waypoint {
    return this.#place
  }

  /** Neither on the way nor at rest. */
  get isIdle(): boolean {
    return this.#way.length === 0 && this.#restMs <= 0
  }

  /** Sends it off from where it is now; it rests when it is there. */
  send(way: readonly Waypoint[], restMs: number): void {
    this.#way = way
    this.#restMs = restMs
  }

  /** Lets time pass. `paceAt` slows it down on stairs. */
  advance(ms: number, paceAt: (place: Waypoint) => number): void {
    let leftMs = ms
    for (;;) {
      const [next, ...later] = this.#way
      if (next === undefined) break
      const metresPerMs = (this.speed * paceAt(this.#place)) / 1000
      const metres = distance(this.#place, next)
      // Up or down the stairs the two ends of a step are the same place on different floors.
      if (metres > metresPerMs * leftMs) {
        const part = (metresPerMs * leftMs) / metres
        const { x, y, floorId } = this.#place
        this.#place = { x: x + (next.x - x) * part, y: y + (next.y - y) * part, floorId }
        return
      }
      leftMs -= metres / metresPerMs
      this.#place = next
      this.#way = later
    }
    this.#restMs -= leftMs
  }
}
