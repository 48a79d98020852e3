import type { Point, Zone } from './plan.js'

export interface Placed {
  readonly id: string
  readonly position: Point
}

/** The nearest of those within reach; null where there is none. */
export const nearest = <Item extends Placed>(items: Iterable<Item>, point: Point, reach: number): Item | null => {
  let found: Item | null = null
  let best = reach
  for (const item of items) {
    const distance = Math.hypot(item.position.x - point.x, item.position.y - point.y)
    if (distance <= best) {
      found = item
      best = distance
    }
  }
  return found
}

/** Even-odd rule: a ray from an inner point crosses the outline an odd number of times. */
export const isInside = (polygon: readonly Point[], { x, y }: Point): boolean => {
  let inside = false
  for (const [index, corner] of polygon.entries()) {
    const before = polygon.at(index - 1) as Point // -1 is the last one
    const crosses =
      corner.y > y !== before.y > y && x < ((before.x - corner.x) * (y - corner.y)) / (before.y - corner.y) + corner.x
    if (crosses) inside = !inside
  }
  return inside
}

export const zoneAt = (zones: readonly Zone[], point: Point): Zone | null =>
  zones.find(({ polygon }) => isInside(polygon, point)) ?? null
