import { distance, type Point } from './plan.js'

export interface Placed {
  readonly id: string
  readonly position: Point
}

/** The nearest of those within reach; null where there is none. */
export const nearest = <Item extends Placed>(items: Iterable<Item>, point: Point, reach: number): Item | null => {
  let found: Item | null = null
  let best = reach
  for (const item of items) {
    const away = distance(item.position, point)
    if (away <= best) {
      found = item
      best = away
    }
  }
  return found
}
