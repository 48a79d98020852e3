import type { Point } from '../site/geometry.js'
import { BUILDINGS, FLOORS, REGIONS } from '../site/layout.js'

/** A point of a path with its floor. */
export interface Waypoint extends Point {
  readonly floorId: string
}

interface Link {
  readonly to: string
  /** From one zone into the other: through the middle of a door, or along the stairs. */
  readonly through: readonly Waypoint[]
}

// People line up with a door at this distance from it, in metres. It is more than half a second's walk, so that the line
// between two positions, which are published once a second, does not cut the corner of a door.
const APPROACH = 0.7

/** The graph of connected zones. */
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
    // The floor changes at the far end of the stairs.
    const landing = { x: rect.x + rect.width / 2, y: rect.y + rect.height - 1, floorId }
    if (above !== undefined) join(zoneId, above.zoneId, [landing, { ...landing, floorId: above.floorId }])
  }
}

/** The shortest path between two zones without its ends. Null if there is none. */
export const wayBetween = (from: string, to: string): readonly Waypoint[] | null => {
  const ways = new Map<string, readonly Waypoint[]>([[from, []]])
  // Iterating over a map includes entries added meanwhile, which makes this a breadth-first search.
  for (const [zone, way] of ways) {
    if (zone === to) return way
    for (const link of LINKS.get(zone) ?? []) if (!ways.has(link.to)) ways.set(link.to, [...way, ...link.through])
  }
  return null
}
