import { isPerson, type Marker, markerLabel } from './marker.js'
import { distance, type Placed, type Point } from './plan.js'

/** Markers that overlap are drawn as one symbol with their number. */
export interface Cluster<Item extends Placed = Marker> {
  readonly items: readonly Item[]
}

export interface Arrangement {
  readonly singles: readonly Marker[]
  readonly clusters: readonly Cluster[]
  /** Markers whose names are shown. */
  readonly named: readonly Marker[]
}

/** From this scale in pixels per metre on, every marker is drawn by itself. */
export const CLUSTERS_BELOW = 18
/** From this scale on, names are shown where there is room. */
export const NAMES_FROM = 26
const CLUSTER_REACH = 15
const MIN_CLUSTER = 3
const ROW_HEIGHT = 18
/** The width of a marker. */
const SYMBOL = 16
/** The approximate width of a letter; the exact one depends on the font. */
const LETTER_WIDTH = 6.5

interface Options {
  /** Pixels per metre. */
  readonly scale: number
  /** The selected marker, which is never part of a cluster and has its own label. */
  readonly selected: string | null
  readonly hasNames: boolean
}

/**
 * Decides which markers are drawn as clusters and which have a name. The result is used for all frames until the next batch
 * or zoom, so that symbols do not flicker while markers move.
 */
export const arrange = (markers: readonly Marker[], { scale, selected, hasNames }: Options): Arrangement => {
  const others = markers.filter(({ id }) => id !== selected)
  const { singles, clusters } =
    scale < CLUSTERS_BELOW ? clustersOf(others, CLUSTER_REACH / scale) : { singles: others, clusters: [] }
  const named = hasNames && scale >= NAMES_FROM ? withRoomForName(others, scale) : []
  // The selected marker is drawn above the others.
  return { singles: [...singles, ...markers.filter(({ id }) => id === selected)], clusters, named }
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

/** A horizontal interval in pixels that a marker or its name covers. */
interface Covered {
  readonly by: Marker
  readonly left: number
  readonly right: number
}

/** The markers whose names cover no other marker and no other name; people come first. */
const withRoomForName = (markers: readonly Marker[], scale: number): Marker[] => {
  const rows = new Map<number, Covered[]>()
  const rowOf = ({ position }: Marker): number => Math.floor((position.y * scale) / ROW_HEIGHT)
  const cover = (covered: Covered): void => {
    const row = rows.get(rowOf(covered.by))
    if (row) row.push(covered)
    else rows.set(rowOf(covered.by), [covered])
  }
  const isFree = ({ by, left, right }: Covered): boolean =>
    [-1, 0, 1].every((step) =>
      (rows.get(rowOf(by) + step) ?? []).every((other) => other.by === by || other.right < left || other.left > right)
    )
  for (const by of markers)
    cover({ by, left: by.position.x * scale - SYMBOL / 2, right: by.position.x * scale + SYMBOL / 2 })
  const hasRoom = (by: Marker): boolean => {
    const left = by.position.x * scale + SYMBOL / 2
    const name = { by, left, right: left + markerLabel(by.name).length * LETTER_WIDTH }
    if (!isFree(name)) return false
    cover(name)
    return true
  }
  return [...markers.filter(({ kind }) => isPerson(kind)), ...markers.filter(({ kind }) => !isPerson(kind))].filter(
    hasRoom
  )
}
