import { isPerson, type Marker } from './marker.js'
import { distance, overlaps, type Point, type Rect, type Size } from './plan.js'
import { toPanel, type View } from './viewport.js'

/** Markers that overlap are drawn as one symbol with their number. */
export type Cluster = readonly Marker[]

export interface Arrangement {
  readonly singles: readonly Marker[]
  readonly clusters: readonly Cluster[]
  /** Markers with a name beside them, and its width in pixels. */
  readonly names: ReadonlyMap<Marker, number>
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
  /** The labels of rooms in pixels, which names must not cover. */
  readonly covered?: readonly Rect[]
}

/** Decides what is drawn as a cluster and which names have room. It is used for all frames until the next batch or zoom. */
export const arrange = (markers: readonly Marker[], { view, panel, selected, covered = [] }: Options): Arrangement => {
  const others = markers.filter(({ id }) => id !== selected)
  const { singles, clusters } =
    view.scale < CLUSTERS_BELOW ? clustersOf(others, CLUSTER_REACH / view.scale) : { singles: others, clusters: [] }
  const all = [...singles, ...markers.filter(({ id }) => id === selected)]
  const symbols = [...all.map(({ position }) => position), ...clusters.map(centreOfCluster)].map((position) => {
    const { x, y } = toPanel(view, position)
    return { x: x - SYMBOL / 2, y: y - SYMBOL / 2, width: SYMBOL, height: SYMBOL }
  })
  return { singles: all, clusters, names: namesOf(singles, [...symbols, ...covered], view, panel) }
}

/** Groups markers around the first one of each group. `reach` is in metres. */
export const clustersOf = (markers: readonly Marker[], reach: number) => {
  const taken = new Set<Marker>()
  const clusters: Cluster[] = []
  const singles: Marker[] = []
  for (const marker of markers) {
    if (taken.has(marker)) continue
    const near = markers.filter((other) => !taken.has(other) && distance(marker.position, other.position) <= reach)
    const isCluster = near.length >= MIN_CLUSTER
    for (const other of isCluster ? near : [marker]) taken.add(other)
    if (isCluster) clusters.push(near)
    else singles.push(marker)
  }
  return { singles, clusters }
}

/** The centre of a cluster at the current positions of its markers. */
export const centreOfCluster = (markers: Cluster): Point => {
  let [x, y] = [0, 0]
  for (const { position } of markers) {
    x += position.x
    y += position.y
  }
  return { x: x / markers.length, y: y / markers.length }
}

/** Pixels from the centre of a marker to its name. */
export const NAME_GAP = 10
const SYMBOL = 16
const NAME_HEIGHT = 16
const LETTER = 6.6
const MAX_NAME_WIDTH = 180

/** The names that cover no symbol, label or other name, and are completely in the panel. People come first. */
const namesOf = (
  singles: readonly Marker[],
  covered: readonly Rect[],
  view: View,
  panel: Size
): ReadonlyMap<Marker, number> => {
  const taken = [...covered]
  const names = new Map<Marker, number>()
  for (const marker of singles.toSorted((one, other) => Number(isPerson(other.kind)) - Number(isPerson(one.kind)))) {
    const { x, y } = toPanel(view, marker.position)
    const width = Math.min(marker.name.length * LETTER, MAX_NAME_WIDTH)
    const rect = { x: x + NAME_GAP, y: y - NAME_HEIGHT / 2, width, height: NAME_HEIGHT }
    const isInPanel = x >= 0 && rect.y >= 0 && rect.x + width <= panel.width && rect.y + NAME_HEIGHT <= panel.height
    if (!isInPanel || taken.some((other) => overlaps(rect, other))) continue
    taken.push(rect)
    names.set(marker, width)
  }
  return names
}
