import { isPerson, type Marker, markerLabel } from './marker.js'
import type { Rect, Size } from './plan.js'
import { textWidth } from './text-width.js'
import type { View } from './viewport.js'

/** The side of a marker on which its name is. */
export type Side = 'right' | 'left' | 'below' | 'above'

export interface Name {
  readonly marker: Marker
  readonly side: Side
}

export const NAME_HEIGHT = 16
/** Pixels from the centre of a marker to its name. */
const GAP = 9
const SYMBOL = 16
const SIDES: readonly Side[] = ['right', 'left', 'below', 'above']

/** The left and upper edge of a name of this width beside a marker at this pixel. */
export const nameLeft = (side: Side, x: number, width: number): number => {
  if (side === 'right') return x + GAP
  return side === 'left' ? x - GAP - width : x - width / 2
}
export const nameTop = (side: Side, y: number): number => {
  if (side === 'below') return y + GAP
  return side === 'above' ? y - GAP - NAME_HEIGHT : y - NAME_HEIGHT / 2
}

export const overlaps = (one: Rect, other: Rect): boolean =>
  one.x < other.x + other.width &&
  other.x < one.x + one.width &&
  one.y < other.y + other.height &&
  other.y < one.y + one.height

const CELL = 64

/** Rectangles in pixels, sorted into the cells of a grid, so that a new one is compared with its neighbours only. */
class CoveredAreas {
  readonly #cells = new Map<number, Rect[]>()

  add(rect: Rect): void {
    for (const key of keysOf(rect)) {
      const cell = this.#cells.get(key)
      if (cell) cell.push(rect)
      else this.#cells.set(key, [rect])
    }
  }

  isFree(rect: Rect): boolean {
    return keysOf(rect).every((key) => (this.#cells.get(key) ?? []).every((other) => !overlaps(rect, other)))
  }
}

const keysOf = ({ x, y, width, height }: Rect): number[] => {
  const keys: number[] = []
  for (let column = Math.floor(x / CELL); column <= Math.floor((x + width) / CELL); column += 1)
    for (let row = Math.floor(y / CELL); row <= Math.floor((y + height) / CELL); row += 1)
      keys.push(column * 65_536 + row)
  return keys
}

export interface NameOptions {
  readonly view: View
  readonly panel: Size
  /** Areas that names must not cover, in pixels: the labels of rooms, the tag of the selected marker. */
  readonly covered: readonly Rect[]
  /** Symbols of clusters, in metres. */
  readonly clusters: readonly { readonly x: number; readonly y: number }[]
  /** The sides of the previous arrangement, which names keep if they can. */
  readonly previous: ReadonlyMap<string, Side>
}

/**
 * The names that cover no marker, no other name and no label of a room, and are completely in the panel. People come first. A
 * name without a free side is left out.
 */
export const placeNames = (markers: readonly Marker[], options: NameOptions, others: readonly Marker[]): Name[] => {
  const { view, panel, covered, clusters, previous } = options
  const areas = new CoveredAreas()
  const cover = (x: number, y: number, size: number): void =>
    areas.add({
      x: x * view.scale + view.x - size / 2,
      y: y * view.scale + view.y - size / 2,
      width: size,
      height: size
    })
  for (const rect of covered) areas.add(rect)
  for (const { position } of [...markers, ...others]) cover(position.x, position.y, SYMBOL)
  for (const { x, y } of clusters) cover(x, y, 28)
  const place = (marker: Marker): Name[] => {
    const [x, y] = [marker.position.x * view.scale + view.x, marker.position.y * view.scale + view.y]
    if (x < 0 || y < 0 || x > panel.width || y > panel.height) return []
    const width = textWidth(markerLabel(marker.name)) + 6
    const kept = previous.get(marker.id)
    for (const side of kept ? [kept, ...SIDES] : SIDES) {
      const rect = { x: nameLeft(side, x, width), y: nameTop(side, y), width, height: NAME_HEIGHT }
      const isInside =
        rect.x >= 0 && rect.y >= 0 && rect.x + width <= panel.width && rect.y + NAME_HEIGHT <= panel.height
      // The name touches its own marker at most.
      if (!isInside || !areas.isFree(rect)) continue
      areas.add(rect)
      return [{ marker, side }]
    }
    return []
  }
  const people = markers.filter(({ kind }) => isPerson(kind))
  return [...people, ...markers.filter(({ kind }) => !isPerson(kind))].flatMap(place)
}
