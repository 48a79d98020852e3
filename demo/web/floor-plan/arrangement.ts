import type { Marker } from './marker.js'
import { type Name, type NameOptions, placeNames } from './name-places.js'
import { distance, type Placed, type Point } from './plan.js'

/** Markers that overlap are drawn as one symbol with their number. */
export interface Cluster<Item extends Placed = Marker> {
  readonly items: readonly Item[]
}

export interface Arrangement extends Grouping {
  readonly names: readonly Name[]
}

/** From this scale in pixels per metre on, every marker is drawn by itself. */
export const CLUSTERS_BELOW = 18
/** The scale to which the plan zooms for a cluster or a followed marker. */
export const CLOSE_UP = 26
const CLUSTER_REACH = 15
const MIN_CLUSTER = 3

export interface Grouping {
  readonly singles: readonly Marker[]
  readonly clusters: readonly Cluster[]
}

/**
 * Decides which markers are drawn as clusters. The result is used for all frames until the next batch or zoom, so that symbols
 * do not flicker while markers move. The selected marker is never part of a cluster, and is drawn above the others.
 */
export const group = (markers: readonly Marker[], scale: number, selected: string | null): Grouping => {
  const others = markers.filter(({ id }) => id !== selected)
  const { singles, clusters } =
    scale < CLUSTERS_BELOW ? clustersOf(others, CLUSTER_REACH / scale) : { singles: others, clusters: [] }
  return { singles: [...singles, ...markers.filter(({ id }) => id === selected)], clusters }
}

/** Adds names where there is room, except for the selected marker, which has a tag of its own. */
export const withNames = (
  { singles, clusters }: Grouping,
  selected: string | null,
  options: Omit<NameOptions, 'clusters'>
): Arrangement => {
  const named = singles.filter(({ id }) => id !== selected)
  const own = singles.filter(({ id }) => id === selected)
  return { singles, clusters, names: placeNames(named, { ...options, clusters: clusters.map(centreOfCluster) }, own) }
}

/** Groups items around the first one of each group. `reach` is in metres. */
export const clustersOf = <Item extends Placed>(items: readonly Item[], reach: number) => {
  const cells = new Map<string, Item[]>()
  const keyOf = ({ x, y }: Point, right = 0, down = 0): string =>
    `${Math.floor(x / reach) + right}:${Math.floor(y / reach) + down}`
  for (const item of items) {
    const key = keyOf(item.position)
    const cell = cells.get(key)
    if (cell) cell.push(item)
    else cells.set(key, [item])
  }
  const taken = new Set<Item>()
  const clusters: Cluster<Item>[] = []
  const singles: Item[] = []
  for (const item of items) {
    if (taken.has(item)) continue
    const near = NEIGHBOURS.flatMap(([right, down]) => cells.get(keyOf(item.position, right, down)) ?? []).filter(
      (other) => !taken.has(other) && distance(item.position, other.position) <= reach
    )
    if (near.length < MIN_CLUSTER) {
      singles.push(item)
      taken.add(item)
      continue
    }
    for (const other of near) taken.add(other)
    clusters.push({ items: near })
  }
  return { singles, clusters }
}

const NEIGHBOURS = [-1, 0, 1].flatMap((right) => [-1, 0, 1].map((down) => [right, down] as const))

/** The centre of a cluster at the current positions of its markers. */
export const centreOfCluster = ({ items }: Cluster<Placed>): Point => {
  let [x, y] = [0, 0]
  for (const { position } of items) {
    x += position.x
    y += position.y
  }
  return { x: x / items.length, y: y / items.length }
}
