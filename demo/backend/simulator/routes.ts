import type { Point } from '../site/geometry.js'
import type { BuildingLayout, Door, FloorLayout, Region } from '../site/layout.js'

/** A place on the way, with the floor that it is on. */
export interface Waypoint extends Point {
  readonly floorId: string
}

interface Link {
  readonly to: string
  /** From inside the one zone to inside the other: through the middle of a door, or up or down the stairs. */
  readonly through: readonly Waypoint[]
}

// So far from a door people line up with it. More than half a second's walk: where somebody is seen once a second, the
// straight line from one sight to the next then never cuts the corner of a door.
const APPROACH = 0.7

/** Which zones of a building lead to which, and how. */
export class Routes {
  readonly #links = new Map<string, Link[]>()

  constructor(building: BuildingLayout) {
    for (const floor of building.floors) {
      for (const door of floor.doors) this.#addDoor(floor, door)
    }
    for (const [index, floor] of building.floors.entries()) {
      const above = building.floors[index + 1]
      if (above !== undefined) this.#addStairs(floor, above)
    }
  }

  /** The way from one zone to another, without where it begins and ends. Null where there is none. */
  between(from: string, to: string): readonly Waypoint[] | null {
    const ways = new Map<string, readonly Waypoint[]>([[from, []]])
    // A map hands out what is added while one goes through it: that is the whole breadth-first search.
    for (const [zone, way] of ways) {
      if (zone === to) return way
      for (const link of this.#links.get(zone) ?? []) {
        if (!ways.has(link.to)) ways.set(link.to, [...way, ...link.through])
      }
    }
    return null
  }

  #addDoor({ floorId }: FloorLayout, { x, y, way, between: [near, far] }: Door): void {
    const before = way === 'x' ? { x: x - APPROACH, y, floorId } : { x, y: y - APPROACH, floorId }
    const after = way === 'x' ? { x: x + APPROACH, y, floorId } : { x, y: y + APPROACH, floorId }
    this.#add(near, far, [before, after])
  }

  /** One floor ends and the other begins at the far end of the stairs, halfway up. */
  #addStairs(below: FloorLayout, above: FloorLayout): void {
    const [lower, upper] = [stairsOf(below), stairsOf(above)]
    if (lower === undefined || upper === undefined) return
    const { rect } = lower
    const landing = { x: rect.x + rect.width / 2, y: rect.y + rect.height - 1 }
    this.#add(lower.zoneId, upper.zoneId, [
      { ...landing, floorId: below.floorId },
      { ...landing, floorId: above.floorId }
    ])
  }

  #add(one: string, other: string, through: readonly Waypoint[]): void {
    this.#linksOf(one).push({ to: other, through })
    this.#linksOf(other).push({ to: one, through: through.toReversed() })
  }

  #linksOf(zone: string): Link[] {
    const known = this.#links.get(zone)
    if (known !== undefined) return known
    const links: Link[] = []
    this.#links.set(zone, links)
    return links
  }
}

const stairsOf = ({ regions }: FloorLayout): Region | undefined => regions.find(({ kind }) => kind === 'stairs')
