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

interface Area {
  readonly id: string
  readonly corners: readonly Corner[]
  /** The bounding box. */
  readonly least: Corner
  readonly most: Corner
}

/** Finds zones by their areas. Where areas overlap, the smallest one counts, such as a desk inside a room. */
export const zoneAreas = (zones: readonly StoredZone[]): ZoneAt => {
  const floorIds = new Set(zones.map(({ floorId }) => floorId))
  const areasOn = (id: string): Area[] => smallestFirst(zones.filter(({ floorId }) => floorId === id).map(areaIn))
  const areas = new Map([...floorIds].map((floorId) => [floorId, areasOn(floorId)]))
  return ({ x, y, floorId }) =>
    areas
      .get(floorId)
      ?.find(
        ({ corners, least, most }) =>
          x >= least.x && x <= most.x && y >= least.y && y <= most.y && isInside(corners, { x, y })
      )?.id ?? null
}

const areaIn = ({ id, polygon }: StoredZone): Area => {
  const corners = cornersOf(polygon)
  const [xs, ys] = [corners.map(({ x }) => x), corners.map(({ y }) => y)]
  return {
    id,
    corners,
    least: { x: Math.min(...xs), y: Math.min(...ys) },
    most: { x: Math.max(...xs), y: Math.max(...ys) }
  }
}

const smallestFirst = (areas: readonly Area[]): Area[] =>
  areas.toSorted((one, other) => areaOf(one.corners) - areaOf(other.corners))
