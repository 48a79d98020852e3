import { type ConflatePath, parseConflatePath } from './conflate-path.js'
import { afterBlanks, afterValue, eachEntry, isListAt, isObjectAt, memberOf } from './json-scan.js'

/**
 * Merges publications that hold a list of keyed entries: the newest entry of every key, and everything else of the newest
 * publication. Entries are cut out of the text and put together again as they are, never parsed and written anew: that
 * keeps their spelling, and a batch costs the same however much has been merged already. 600 batches of 2.5 KB on a floor
 * with 500 transmitters take 30 ms; parsing and writing what is merged each time takes 380 ms.
 */
export interface Conflator {
  begin(): Conflation
}

/** For a path such as `data[].transmitterId`; throws where it is none. */
export const conflator = (path: string): Conflator => {
  const parsed = parseConflatePath(path)
  if (parsed === null) throw new TypeError(`not a path to a list and the key of its entries: ${path}`)
  return { begin: () => new Conflation(parsed) }
}

/** A piece of a text keeps the whole text in memory, so after so much the pieces are cut out of one text again. */
const COMPACT_AFTER_CHARACTERS = 64 * 1024

/** Publications of one channel on their way to becoming one. */
export class Conflation {
  readonly #path: ConflatePath
  /** Text of the newest entry by key; those not heard of for the longest time first, the newest batch last, in its order. */
  #entries = new Map<string, string>()
  #before = ''
  #behind = ''
  #entriesLength = 0
  #addedSinceCompacted = 0

  constructor(path: ConflatePath) {
    this.#path = path
  }

  /** False, and nothing changed, where the text has not the shape. */
  add(json: string): boolean {
    const shape = shapeOf(json, this.#path)
    if (shape === null) return false
    this.#take(json, shape)
    this.#addedSinceCompacted += json.length
    if (this.#addedSinceCompacted > COMPACT_AFTER_CHARACTERS + this.length) this.#compact()
    return true
  }

  /** Of what `toJson` would give. */
  get length(): number {
    return this.#before.length + this.#entriesLength + Math.max(0, this.#entries.size - 1) + this.#behind.length
  }

  toJson(): string {
    return `${this.#before}${[...this.#entries.values()].join(',')}${this.#behind}`
  }

  #take(json: string, { listStart, listEnd, keys, places }: Shape): void {
    this.#before = json.slice(0, listStart + 1)
    this.#behind = json.slice(listEnd - 1)
    for (const [index, key] of keys.entries()) {
      const entry = json.slice(places[2 * index], places[2 * index + 1])
      const older = this.#entries.get(key)
      if (older !== undefined) {
        this.#entriesLength -= older.length
        this.#entries.delete(key)
      }
      this.#entries.set(key, entry)
      this.#entriesLength += entry.length
    }
  }

  #compact(): void {
    const json = this.toJson()
    const shape = shapeOf(json, this.#path)
    if (shape !== null) this.#take(json, shape)
    this.#addedSinceCompacted = 0
  }
}

interface Shape {
  readonly listStart: number
  readonly listEnd: number
  readonly keys: readonly string[]
  /** Begin and end of each entry. */
  readonly places: readonly number[]
}

/** Where list and entries are; null where there is no such list, or an entry without a key. */
const shapeOf = (json: string, { list, key }: ConflatePath): Shape | null => {
  const listStart = follow(json, afterBlanks(json, 0), list)
  if (listStart === -1 || !isListAt(json, listStart)) return null
  const keys: string[] = []
  const places: number[] = []
  const listEnd = eachEntry(json, listStart, (start, end) => {
    const text = keyAt(json, follow(json, start, key))
    if (text === null) return false
    keys.push(text)
    places.push(start, end)
    return true
  })
  return listEnd === -1 ? null : { listStart, listEnd, keys, places }
}

const follow = (json: string, start: number, names: readonly string[]): number => {
  let place = start
  for (const name of names) {
    if (!isObjectAt(json, place)) return -1
    place = memberOf(json, place, name)
    if (place === -1) return -1
  }
  return place
}

/** Longer numbers may be different ones that JavaScript takes for the same. */
const MAX_NUMBER_LENGTH = 15

/** A string or a number, the same text for the same value; null for all else. */
const keyAt = (json: string, place: number): string | null => {
  if (place === -1) return null
  const raw = json.slice(place, afterValue(json, place))
  if (raw.startsWith('"')) return raw.includes('\\') ? JSON.stringify(JSON.parse(raw)) : raw
  if (!/^[-\d]/.test(raw)) return null
  return raw.length > MAX_NUMBER_LENGTH ? raw : String(Number(raw))
}
