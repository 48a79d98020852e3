import { NO_TIME } from '../../../../schemas/iso-time.js'
import {
  INVALID,
  isListAt,
  type MemberReader,
  parseString,
  readMembers,
  skipValue,
  skipWhitespace,
  sliceText
} from '../codec/json.js'
import { findPath, MemberName, MemberSearch, NOT_FOUND, searchEach } from '../codec/json-members.js'
import { timeOf } from './entry-time.js'
import { type Place, type PlacePaths, placeAt } from './place.js'

/** A parsed `conflate` option: the list inside a publication and the key of its entries. */
export interface ConflatePath {
  /** Member names from the outermost object to the list; empty if the publication itself is the list. */
  readonly list: readonly string[]
  /** Member names from an entry to its key. */
  readonly key: readonly string[]
}

const NAME = '[A-Za-z_$][\\w$-]*'
const NAMES = `${NAME}(?:\\.${NAME})*`
const SHAPE = new RegExp(`^((?:${NAMES})?)\\[\\]\\.(${NAMES})$`)
const MEMBER_PATH = new RegExp(`^${NAMES}$`)

/** Parses a path such as `data[].transmitterId`, `[].id` or `a.b[].c.d`; null if it is invalid. */
export const parseConflatePath = (text: string): ConflatePath | null => {
  const [, list, key] = SHAPE.exec(text) ?? []
  if (list === undefined || key === undefined) return null
  return { list: list === '' ? [] : list.split('.'), key: key.split('.') }
}

/** Parses an `entry_time` option, the path from an entry to its time, such as `timestamp` or `meta.time`; null if it is invalid. */
export const parseEntryTimePath = (text: string): readonly string[] | null =>
  MEMBER_PATH.test(text) ? text.split('.') : null

/** An entry of a list. Its text is exactly as the publisher sent it, a part of the text of the publication. */
export interface Entry {
  readonly key: string
  readonly text: string
  readonly bytes: number
  /** Milliseconds since 1970; `NO_TIME` without one. */
  readonly time: number
  /** Null without coordinates, and in namespaces without views. */
  readonly place: Place | null
}

/** A publication taken apart: its entries, and its text before and after them. */
export interface KeyedList {
  readonly prefix: string
  readonly suffix: string
  /** Bytes of prefix and suffix. */
  readonly outerBytes: number
  readonly entries: readonly Entry[]
}

/** Null if no entry has a time. */
export const newestTime = (list: KeyedList | null): number | null => {
  let newest: number | null = null
  // A comparison with `NO_TIME` is false.
  for (const { time } of list?.entries ?? []) if (time > (newest ?? Number.NEGATIVE_INFINITY)) newest = time
  return newest
}

/** Reads publications that contain a list of keyed entries. */
export interface Conflator {
  /** Null for a publication that does not have the configured shape. The last result is reused for the same text. */
  read(text: string): KeyedList | null
}

/**
 * The same lists with copied texts. A part of a text keeps the whole text in memory, and a merged result can contain one entry
 * of each of many publications.
 */
export const copying = ({ read }: Conflator): Conflator => {
  let lastText: string | null = null
  let lastList: KeyedList | null = null
  return {
    read: (text) => {
      if (text !== lastText) {
        const list = read(text)
        lastList = list === null ? null : { ...list, entries: list.entries.map(copyOf) }
        lastText = text
      }
      return lastList
    }
  }
}

const copyOf = ({ key, text, bytes, time, place }: Entry): Entry => ({
  key: copyText(key),
  text: copyText(text),
  bytes,
  time,
  place
})

export const copyText = (text: string): string => Buffer.from(text).toString()

/** Throws a `TypeError` for an invalid path. Without `entryTime` entries have no time, without `view` no place. */
export const conflator = (
  conflate: string,
  entryTime: string | null = null,
  view: PlacePaths | null = null
): Conflator => {
  const path = parseConflatePath(conflate)
  if (path === null) throw new TypeError(`not a path to a list and the key of its entries: ${conflate}`)
  const timePath = entryTime === null ? null : parseEntryTimePath(entryTime)
  if (entryTime !== null && timePath === null) throw new TypeError(`not a path to the time of an entry: ${entryTime}`)
  const reader = new ListReader(path, timePath, view)
  let lastText: string | null = null
  let lastList: KeyedList | null = null
  return {
    read: (text) => {
      if (text !== lastText) {
        lastList = reader.read(text)
        lastText = text
      }
      return lastList
    }
  }
}

/** A publication as text and as bytes: bytes are scanned faster, and a slice of the text copies nothing. */
class Source {
  readonly json: Buffer
  readonly #text: string
  readonly #isAscii: boolean

  constructor(text: string) {
    this.json = Buffer.from(text)
    this.#text = text
    this.#isAscii = this.json.length === text.length
  }

  slice(start: number, end: number): string {
    return this.#isAscii ? this.#text.slice(start, end) : sliceText(this.json, start, end)
  }
}

const [COMMA, CLOSE_LIST] = [0x2c, 0x5d] as const

/** JavaScript may read two different longer numbers as the same value. */
const MAX_NUMBER_LENGTH = 15

/** A string or number in normalised form, so that equal values have equal text; null for everything else. */
const keyOf = (json: string): string | null => {
  if (json.startsWith('"')) return json.includes('\\') ? JSON.stringify(parseString(json)) : json
  if (!/^[-\d]/.test(json)) return null
  return json.length > MAX_NUMBER_LENGTH ? json : String(Number(json))
}

/** Reads the entries of a list. Key, time and place are found in one pass over an entry. */
class EntryReader {
  /** The first name of each path. */
  readonly #first: MemberSearch
  /** Indices in the search; negative for a path that is not configured. */
  readonly #timeIndex: number
  readonly #placeIndex: number
  /** The names after the first one. */
  readonly #keyRest: readonly MemberSearch[]
  readonly #timeRest: readonly MemberSearch[]
  readonly #xRest: readonly MemberSearch[]
  readonly #yRest: readonly MemberSearch[]

  constructor(key: readonly string[], time: readonly string[] | null, place: PlacePaths | null) {
    const paths = [key, ...(time === null ? [] : [time]), ...(place === null ? [] : [place.x, place.y])]
    this.#first = new MemberSearch(paths.map(([first = '']) => first))
    this.#timeIndex = time === null ? NOT_FOUND : 1
    this.#placeIndex = place === null ? NOT_FOUND : paths.length - 2
    this.#keyRest = searchEach(key.slice(1))
    this.#timeRest = searchEach(time?.slice(1) ?? [])
    this.#xRest = searchEach(place?.x.slice(1) ?? [])
    this.#yRest = searchEach(place?.y.slice(1) ?? [])
  }

  /** Null for an entry without a key. */
  read(source: Source, start: number): Entry | null {
    const { json } = source
    const { starts } = this.#first
    const end = this.#first.search(json, start)
    if (end === INVALID) return null
    const keyStart = findPath(json, starts[0] ?? NOT_FOUND, this.#keyRest)
    const key = keyStart < 0 ? null : keyOf(source.slice(keyStart, skipValue(json, keyStart)))
    if (key === null) return null
    const time = this.#timeIndex < 0 ? NO_TIME : this.#timeAt(json, starts[this.#timeIndex] ?? NOT_FOUND)
    const place = this.#placeIndex < 0 ? null : this.#placeAt(json, this.#placeIndex)
    return { key, text: source.slice(start, end), bytes: end - start, time, place }
  }

  #timeAt(json: Buffer, index: number): number {
    const start = findPath(json, index, this.#timeRest)
    return start < 0 ? NO_TIME : timeOf(json, start, skipValue(json, start))
  }

  #placeAt(json: Buffer, index: number): Place | null {
    const { starts } = this.#first
    const x = findPath(json, starts[index] ?? NOT_FOUND, this.#xRest)
    return placeAt(json, x, findPath(json, starts[index + 1] ?? NOT_FOUND, this.#yRest))
  }
}

/** Reads a publication in one pass. */
class ListReader implements MemberReader {
  readonly #path: readonly MemberName[]
  readonly #entryReader: EntryReader
  #source = new Source('')
  /** Number of names that lead to the object that is being read. */
  #depth = 0
  #list: KeyedList | null = null

  constructor({ list, key }: ConflatePath, time: readonly string[] | null, place: PlacePaths | null) {
    this.#path = list.map((name) => new MemberName(name))
    this.#entryReader = new EntryReader(key, time, place)
  }

  /** Null if there is no such list, or if an entry has no key. */
  read(text: string): KeyedList | null {
    this.#source = new Source(text)
    this.#list = null
    const end = this.#readValue(skipWhitespace(this.#source.json, 0))
    return end === INVALID ? null : this.#list
  }

  /** Reads the list, or the object that leads to it. Returns the index after it, or `INVALID`. */
  #readValue(index: number): number {
    return this.#depth === this.#path.length ? this.#readList(index) : readMembers(this.#source.json, index, this)
  }

  readMember(json: Buffer, name: number, start: number): number {
    if (!this.#path[this.#depth]?.matches(json, name)) return skipValue(json, start)
    // The member is repeated: parsers disagree on which of two members counts.
    if (this.#list !== null) return INVALID
    this.#depth += 1
    const end = this.#readValue(start)
    this.#depth -= 1
    return this.#list === null ? INVALID : end
  }

  #readList(index: number): number {
    const source = this.#source
    const { json } = source
    if (!isListAt(json, index)) return INVALID
    const entries: Entry[] = []
    let next = skipWhitespace(json, index + 1)
    while (json[next] !== CLOSE_LIST) {
      const entry = this.#entryReader.read(source, next)
      if (entry === null) return INVALID
      entries.push(entry)
      next = skipWhitespace(json, next + entry.bytes)
      if (json[next] === COMMA) next = skipWhitespace(json, next + 1)
      else if (json[next] !== CLOSE_LIST) return INVALID
    }
    const prefix = source.slice(0, index + 1)
    const suffix = source.slice(next, json.length)
    this.#list = { prefix, suffix, outerBytes: index + 1 + json.length - next, entries }
    return next + 1
  }
}
