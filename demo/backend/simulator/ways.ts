import type { Point } from '../site/geometry.js'
import { BUILDINGS, FLOORS, REGIONS } from '../site/layout.js'

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

/** Which zones of the site lead to which, and how. */
const LINKS = new Map<string, Link[]>(REGIONS.map(({ zoneId }) => [zoneId, []]))

const join = (one: string, other: string, through: readonly Waypoint[]): void => {
  LINKS.get(one)?.push({ to: other, through })
  LINKS.get(other)?.push({ to: one, through: through.toReversed() })
}

for (const { floorId, doors } of FLOORS) {
  for (const { x, y, way, between } of doors) {
    const [aside, along] = way === 'x' ? [APPROACH, 0] : [0, APPROACH]
    join(...between, [
      { x: x - aside, y: y - along, floorId },
      { x: x + aside, y: y + along, floorId }
    ])
  }
}
for (const { id } of BUILDINGS) {
  const stairs = REGIONS.filter(({ kind, buildingId }) => kind === 'stairs' && buildingId === id)
  for (const [index, { zoneId, floorId, rect }] of stairs.entries()) {
    const above = stairs[index + 1]
    // One floor ends and the other begins at the far end of the stairs, halfway up.
    const landing = { x: rect.x + rect.width / 2, y: rect.y + rect.height - 1, floorId }
    if (above !== undefined) join(zoneId, above.zoneId, [landing, { ...landing, floorId: above.floorId }])
  }
}

/** The way from one zone to another, without where it begins and ends. Null where there is none. */
export const wayBetween = (from: string, to: string): readonly Waypoint[] | null => {
  const ways = new Map<string, readonly Waypoint[]>([[from, []]])
  // A map hands out what is added while one goes through it: that is the whole breadth-first search.
  for (const [zone, way] of ways) {
    if (zone === to) return way
    for (const link of LINKS.get(zone) ?? []) if (!ways.has(link.to)) ways.set(link.to, [...way, ...link.through])
  }
  return null
}
