import { isPerson, type Marker } from './marker.js'
import { distance, overlaps, type Placed, type Point, type Rect, type Size } from './plan.js'
import { toPanel, type View } from './viewport.js'

/** Markers that overlap are drawn as one symbol with their number. */
export interface Cluster<Item extends Placed = Marker> {
  readonly items: readonly Item[]
}

export interface Name {
  readonly marker: Marker
  readonly isLeft: boolean
}

export interface Arrangement {
  readonly singles: readonly Marker[]
  readonly clusters: readonly Cluster[]
  readonly names: readonly Name[]
}

/** From this scale in pixels per metre on, every marker is drawn by itself. */
export const CLUSTERS_BELOW = 18
/** The scale to which the plan zooms for a cluster or a followed marker. */
export const CLOSE_UP = 26
const CLUSTER_REACH = 15
const MIN_CLUSTER = 3

interface Options {
  readonly view: View
  readonly panel: Size
  /** The selected marker is never part of a cluster, is drawn above the others, and has a tag instead of a name. */
  readonly selected: string | null
  /** Labels of rooms in pixels, which names must not cover. */
  readonly covered: readonly Rect[]
  /** The width of a name in pixels; null if names are switched off. */
  readonly widthOf: ((name: string) => number) | null
}

/** Decides what is drawn as a cluster and which names have room. It is used for all frames until the next batch or zoom. */
export const arrange = (markers: readonly Marker[], options: Options): Arrangement => {
  const { view, selected, widthOf } = options
  const others = markers.filter(({ id }) => id !== selected)
  const { singles, clusters } =
    view.scale < CLUSTERS_BELOW ? clustersOf(others, CLUSTER_REACH / view.scale) : { singles: others, clusters: [] }
  const all = [...singles, ...markers.filter(({ id }) => id === selected)]
  return { singles: all, clusters, names: widthOf ? namesOf(all, clusters, { ...options, widthOf }) : [] }
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
    const isCluster = near.length >= MIN_CLUSTER
    for (const other of isCluster ? near : [item]) taken.add(other)
    if (isCluster) clusters.push({ items: near })
    else singles.push(item)
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

export const NAME_HEIGHT = 16
/** Pixels from the centre of a marker to its name. */
const GAP = 9
const SYMBOL = 16
const CLUSTER_SYMBOL = 28

/** The left edge of a name of this width beside a marker at this pixel. */
export const nameLeft = (isLeft: boolean, x: number, width: number): number => (isLeft ? x - GAP - width : x + GAP)

/** The names that cover no marker, no other name and no label, and are completely in the panel. People come first. */
const namesOf = (
  singles: readonly Marker[],
  clusters: readonly Cluster[],
  { view, panel, selected, covered, widthOf }: Options & { readonly widthOf: (name: string) => number }
): readonly Name[] => {
  const taken = [...covered]
  const take = (place: Point, size: number): void => {
    const { x, y } = toPanel(view, place)
    taken.push({ x: x - size / 2, y: y - size / 2, width: size, height: size })
  }
  for (const { position } of singles) take(position, SYMBOL)
  for (const cluster of clusters) take(centreOfCluster(cluster), CLUSTER_SYMBOL)
  const named = singles.filter(({ id }) => id !== selected)
  return [...named.filter(({ kind }) => isPerson(kind)), ...named.filter(({ kind }) => !isPerson(kind))].flatMap(
    (marker) => {
      const { x, y } = toPanel(view, marker.position)
      if (x < 0 || y < NAME_HEIGHT / 2 || x > panel.width || y > panel.height - NAME_HEIGHT / 2) return []
      const width = widthOf(marker.name)
      for (const isLeft of [false, true]) {
        const rect = { x: nameLeft(isLeft, x, width), y: y - NAME_HEIGHT / 2, width, height: NAME_HEIGHT }
        if (rect.x < 0 || rect.x + width > panel.width || taken.some((other) => overlaps(rect, other))) continue
        taken.push(rect)
        return [{ marker, isLeft }]
      }
      return []
    }
  )
}
