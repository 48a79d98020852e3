import { isObject } from '../../../shared/is-object.js'
import type { ViewOptions } from '../options.js'
import type { Publication } from '../publication.js'

/** Per side. The subscriber of a larger view receives everything. */
const MAX_VIEW_CELLS = 64

/** Coordinate of an entry that belongs to every view. Coordinates of entries are finite. */
export const EVERYWHERE = Number.POSITIVE_INFINITY

/** A range of one axis, from its start up to but not including its end. The end is computed as clients do it. */
interface Side {
  readonly start: number
  readonly length: number
  readonly end: number
  readonly cells: number
}

/** The part of the plane that a subscriber receives: a rectangle of whole cells. */
export class View {
  /** The rectangle as JSON text, if it is limited. Equal for equal views, so that their subscribers share groups. */
  readonly text: string
  readonly #left: number
  readonly #right: number
  readonly #top: number
  readonly #bottom: number

  constructor(x: Side, y: Side) {
    this.text = `{"x":${x.start},"y":${y.start},"w":${x.length},"h":${y.length}}`
    this.#left = x.start
    this.#right = x.end
    this.#top = y.start
    this.#bottom = y.end
  }

  /** Whether the subscribe reply names it. */
  get isLimited(): boolean {
    return Number.isFinite(this.#left)
  }

  contains(x: number, y: number): boolean {
    return (x >= this.#left && x < this.#right && y >= this.#top && y < this.#bottom) || x === EVERYWHERE
  }
}

const UNLIMITED: Side = {
  start: Number.NEGATIVE_INFINITY,
  length: Number.POSITIVE_INFINITY,
  end: Number.POSITIVE_INFINITY,
  cells: Number.POSITIVE_INFINITY
}

/** For subscribers that have asked for a view which is not granted. */
export const EVERYTHING = new View(UNLIMITED, UNLIMITED)

/**
 * The view that `{x, y, w, h}` asks for, rounded outward to cells; `EVERYTHING` if it has too many, null if it is not a rectangle
 * that can be counted in cells.
 */
export const parseView = (asked: unknown, cell: number): View | null => {
  if (!isObject(asked)) return null
  const x = roundOutward(asked.x, asked.w, cell)
  const y = roundOutward(asked.y, asked.h, cell)
  if (x === null || y === null) return null
  return x.cells > MAX_VIEW_CELLS || y.cells > MAX_VIEW_CELLS ? EVERYTHING : new View(x, y)
}

const roundOutward = (start: unknown, length: unknown, cell: number): Side | null => {
  if (typeof start !== 'number' || typeof length !== 'number' || !(length > 0)) return null
  let first = Math.floor(start / cell)
  // A division is rounded, and the product may then be beyond the value.
  if (first * cell > start) first -= 1
  const last = Math.max(first + 1, Math.ceil((start + length) / cell))
  let side = sideOf(first, last, cell)
  if (side.end < start + length) side = sideOf(first, last + 1, cell)
  return Number.isSafeInteger(first) && Number.isSafeInteger(last) && Number.isFinite(side.end) ? side : null
}

const sideOf = (first: number, last: number, cell: number): Side => {
  const start = first * cell
  const length = (last - first) * cell
  return { start, length, end: start + length, cells: last - first }
}

export const isSameView = (one: ViewOptions | null, other: ViewOptions | null): boolean =>
  JSON.stringify(one) === JSON.stringify(other)

/** The places of a publication. */
export interface Placed {
  /** Null if the publication has nothing for the view. */
  partFor(view: View): Publication | null
}

/** A publication as channels with views deliver it. */
export interface PlacedPublication extends Publication {
  readonly placed?: Placed
}

/** The part of a publication that the subscribers of a view receive; null for none. */
export const partFor = (view: View, publication: PlacedPublication): Publication | null =>
  publication.placed === undefined ? withoutPosition(publication) : publication.placed.partFor(view)

/** Subscribers with a view have no position. */
export const withoutPosition = (publication: Publication): Publication => ({ ...publication, offset: 0, delta: false })
