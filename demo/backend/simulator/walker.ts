import { distance } from '../site/geometry.js'
import type { Waypoint } from './ways.js'

/** Somebody or something that carries a transmitter: on the way, or at rest where the way has ended. */
export interface Walker {
  readonly id: string
  /** In metres per second. */
  readonly speed: number
  place: Waypoint
  way: readonly Waypoint[]
  restMs: number
}

/** Lets time pass. `paceAt` slows it down on stairs. */
export const walk = (walker: Walker, ms: number, paceAt: (place: Waypoint) => number): void => {
  let leftMs = ms
  for (const next of walker.way) {
    const { x, y, floorId } = walker.place
    const metresPerMs = (walker.speed * paceAt(walker.place)) / 1000
    const metres = distance(walker.place, next)
    // Up or down the stairs the two ends of a step are the same place on different floors.
    if (metres > metresPerMs * leftMs) {
      const part = (metresPerMs * leftMs) / metres
      walker.place = { x: x + (next.x - x) * part, y: y + (next.y - y) * part, floorId }
      return
    }
    leftMs -= metres / metresPerMs
    walker.place = next
    walker.way = walker.way.slice(1)
  }
  walker.restMs -= leftMs
}
