import type { Point } from '../site/geometry.js'
import type { BuildingLayout, FloorLayout, Region } from '../site/layout.js'

/** A place on the way, with the floor that it is on. */
export interface Waypoint extends Point {
  readonly floorId: string
}

/** The way from one zone to another, without where it begins and ends. Null where there is none. */
export type Ways = (from: string, to: string) => readonly Waypoint[] | null

interface Link {
  readonly to: string
  /** From inside the one zone to inside the other: through the middle of a door, or up or down the stairs. */
  readonly through: readonly Waypoint[]
}

// So far from a door people line up with it. More than half a second's walk: where somebody is seen once a second, the
// straight line from one sight to the next then never cuts the corner of a door.
const APPROACH = 0.7

/** Which zones of the site lead to which, and how. */
export const waysIn = (site: readonly BuildingLayout[]): Ways => {
  const links = new Map<string, readonly Link[]>()
  const add = (from: string, link: Link) => links.set(from, [...(links.get(from) ?? []), link])
  const join = (one: string, other: string, through: readonly Waypoint[]): void => {
    add(one, { to: other, through })
    add(other, { to: one, through: through.toReversed() })
  }
  for (const { floorId, doors } of site.flatMap(({ floors }) => floors)) {
    for (const { x, y, way, between } of doors) {
      const [aside, along] = way === 'x' ? [APPROACH, 0] : [0, APPROACH]
      join(...between, [
        { x: x - aside, y: y - along, floorId },
        { x: x + aside, y: y + along, floorId }
      ])
    }
  }
  for (const stairs of site.map(({ floors }) => floors.flatMap(stairsOf))) {
    for (const [index, { zoneId, floorId, rect }] of stairs.entries()) {
      const above = stairs[index + 1]
      // One floor ends and the other begins at the far end of the stairs, halfway up.
      const landing = { x: rect.x + rect.width / 2, y: rect.y + rect.height - 1, floorId }
      if (above !== undefined) join(zoneId, above.zoneId, [landing, { ...landing, floorId: above.floorId }])
    }
  }
  return (from, to) => {
    const ways = new Map<string, readonly Waypoint[]>([[from, []]])
    // A map hands out what is added while one goes through it: that is the whole breadth-first search.
    for (const [zone, way] of ways) {
      if (zone === to) return way
      for (const link of links.get(zone) ?? []) if (!ways.has(link.to)) ways.set(link.to, [...way, ...link.through])
    }
    return null
  }
}

const stairsOf = ({ regions }: FloorLayout): Region[] => regions.filter(({ kind }) => kind === 'stairs')
