import { areaOf, type Corner, cornersOf, isInside } from '../../../schemas/polygon.js'
import type { Waypoint } from './ways.js'

/** The id of the zone at a position; null outside of all zones. */
export type ZoneAt = (position: Waypoint) => string | null

/** A zone with an area. */
export interface StoredZone {
  readonly id: string
  readonly floorId: string
  readonly polygon: readonly (Corner | readonly number[])[]
}

/** Finds zones by their areas. Where areas overlap, the smallest one counts, such as a desk inside a room. */
export const zoneAreas = (zones: readonly StoredZone[]): ZoneAt => {
  const areas = zones
    .map(({ id, floorId, polygon }) => ({ id, floorId, corners: cornersOf(polygon) }))
    .toSorted((one, other) => areaOf(one.corners) - areaOf(other.corners))
  return ({ x, y, floorId }) =>
    areas.find((area) => area.floorId === floorId && isInside(area.corners, { x, y }))?.id ?? null
}
