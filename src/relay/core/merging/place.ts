import { skipValue, skipWhitespace, sliceText } from '../codec/json.js'
import { findPath, MemberSearch, NOT_FOUND, searchEach } from '../codec/json-members.js'
import type { ViewOptions } from '../options.js'
import type { Payload } from '../publication.js'

/** Where an entry is. Both numbers are finite. */
export interface Place {
  readonly x: number
  readonly y: number
}

/** Paths to the coordinates of an entry. */
export type PlacePaths = Pick<ViewOptions, 'x' | 'y'>

const [MINUS, ZERO, NINE] = [0x2d, 0x30, 0x39] as const

/** The number that starts at `index`; NaN for every other value, or a number that is too large. */
const numberAt = (json: Buffer, index: number): number => {
  const first = json[index] ?? 0
  if (index < 0 || (first !== MINUS && (first < ZERO || first > NINE))) return Number.NaN
  const value = Number(sliceText(json, index, skipValue(json, index)))
  return Number.isFinite(value) ? value : Number.NaN
}

/** Null unless both values are numbers. */
export const placeAt = (json: Buffer, xIndex: number, yIndex: number): Place | null => {
  const x = numberAt(json, xIndex)
  const y = numberAt(json, yIndex)
  return Number.isNaN(x) || Number.isNaN(y) ? null : { x, y }
}

/** Reads the coordinates in the data of a map's entry. */
export class PlaceReader {
  readonly #first: MemberSearch
  readonly #xRest: readonly MemberSearch[]
  readonly #yRest: readonly MemberSearch[]

  constructor({ x: [x = '', ...xRest], y: [y = '', ...yRest] }: PlacePaths) {
    this.#first = new MemberSearch([x, y])
    this.#xRest = searchEach(xRest)
    this.#yRest = searchEach(yRest)
  }

  /** Null without coordinates. */
  read(data: Payload): Place | null {
    const json = Buffer.from(data)
    this.#first.search(json, skipWhitespace(json, 0))
    const [x = NOT_FOUND, y = NOT_FOUND] = this.#first.starts
    return placeAt(json, findPath(json, x, this.#xRest), findPath(json, y, this.#yRest))
  }
}
