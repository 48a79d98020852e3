import {
  hasTooManyContainers,
  INVALID,
  type MemberReader,
  parseString,
  readMembers,
  skipValue,
  skipWhitespace,
  sliceText
} from './json.js'

const BACKSLASH = 0x5c

/** A member name, compared with the names in a text. */
export class MemberName {
  readonly #name: string
  /** With quotes, as it is usually spelled. */
  readonly #json: Buffer

  constructor(name: string) {
    this.#name = name
    this.#json = Buffer.from(JSON.stringify(name))
  }

  /** Whether the valid string at `index` is this name. */
  matches(json: Buffer, index: number): boolean {
    const expected = this.#json
    for (let each = 1; each < expected.length; each++) {
      const byte = json[index + each]
      if (byte === BACKSLASH) return stringAt(json, index) === this.#name
      if (byte !== expected[each]) return false
    }
    return true
  }
}

/** The value of the valid string at `index`. */
const stringAt = (json: Buffer, index: number): string => {
  const raw = sliceText(json, index, skipValue(json, index))
  return raw.includes('\\') ? (parseString(raw) ?? '') : raw.slice(1, -1)
}

export const NOT_FOUND = -1
/** More than one member has the name: parsers disagree on which of them counts. */
const REPEATED = -2

/** Finds members of an object by their names, in one pass. */
export class MemberSearch implements MemberReader {
  readonly #names: readonly MemberName[]
  /** Index of the value of each member; negative if there is none, or more than one. */
  readonly starts: number[]
  /** Index after the value. */
  readonly ends: number[]

  constructor(names: readonly string[]) {
    this.#names = names.map((name) => new MemberName(name))
    this.starts = names.map(() => NOT_FOUND)
    this.ends = names.map(() => NOT_FOUND)
  }

  /** Searches the object at `index`. Returns the index after the object, or `INVALID`; nothing is found then. */
  search(json: Buffer, index: number): number {
    this.starts.fill(NOT_FOUND)
    const end = readMembers(json, index, this)
    if (end === INVALID) this.starts.fill(NOT_FOUND)
    return end
  }

  readMember(json: Buffer, name: number, start: number): number {
    const { starts, ends } = this
    const end = skipValue(json, start)
    const names = this.#names
    for (let each = 0; each < names.length; each++) {
      if (!names[each]?.matches(json, name)) continue
      starts[each] = starts[each] === NOT_FOUND ? start : REPEATED
      ends[each] = end
    }
    return end
  }
}

export const searchEach = (names: readonly string[]): readonly MemberSearch[] =>
  names.map((name) => new MemberSearch([name]))

/** Start of the value that the names lead to from the value at `index`; negative if there is none. */
export const findPath = (json: Buffer, index: number, names: readonly MemberSearch[]): number => {
  let found = index
  for (const name of names) {
    if (found < 0) return found
    name.search(json, found)
    found = name.starts[0] ?? NOT_FOUND
  }
  return found
}

/** Source text of the first member of the search in a JSON object; null if there is none, or more than one. */
export const memberText = (object: string, member: MemberSearch): string | null => {
  const json = Buffer.from(object)
  member.search(json, skipWhitespace(json, 0))
  const [start = NOT_FOUND] = member.starts
  return start < 0 ? null : sliceText(json, start, member.ends[0] ?? start)
}

/** Not an `Error`: it becomes a reply, which needs no stack trace. */
export class TooManyContainers {}

/** Start and end index of a value. */
export interface ValueRange {
  readonly start: number
  readonly end: number
}

interface Member extends ValueRange {
  readonly name: string
}

/** A validated object whose members are parsed only on access. */
export class LazyJsonObject {
  /** Index after the object. */
  readonly end: number
  readonly #json: Buffer
  readonly #members: readonly Member[]

  private constructor(json: Buffer, members: readonly Member[], end: number) {
    this.#json = json
    this.#members = members
    this.end = end
  }

  /** Validates the object at `index`; null if there is no valid object. */
  static at(json: Buffer, index: number): LazyJsonObject | null {
    const members: Member[] = []
    const end = readMembers(json, index, {
      readMember: (_, name, start) => {
        const end = skipValue(json, start)
        members.push({ name: stringAt(json, name), start, end })
        return end
      }
    })
    return end === INVALID ? null : new LazyJsonObject(json, members, end)
  }

  get names(): readonly string[] {
    return this.#members.map(({ name }) => name)
  }

  /**
   * The parsed value; the last one if the name occurs more than once, as in JSON.parse. Throws `TooManyContainers` if parsing
   * would block the event loop.
   */
  value(name: string): unknown {
    const member = this.#last(name)
    if (member === undefined) return undefined
    const text = sliceText(this.#json, member.start, member.end)
    if (hasTooManyContainers(text)) throw new TooManyContainers()
    return JSON.parse(text)
  }

  /** The parsed value if its text has at most `maxBytes`, else undefined. */
  shortValue(name: string, maxBytes: number): unknown {
    const member = this.#last(name)
    return member === undefined || member.end - member.start > maxBytes ? undefined : this.value(name)
  }

  has(name: string): boolean {
    return this.#members.some((each) => each.name === name)
  }

  /** Null if there is no such member, or more than one: parsers disagree on which of two members counts. */
  range(name: string): ValueRange | null {
    const members = this.#members.filter((each) => each.name === name)
    return members.length === 1 ? (members[0] ?? null) : null
  }

  /** The value as an object; null if it is none, and under the same conditions as `range`. */
  object(name: string): LazyJsonObject | null {
    const range = this.range(name)
    return range === null ? null : LazyJsonObject.at(this.#json, range.start)
  }

  /** All members with their values as objects; null for other values. */
  *objects(): Iterable<readonly [name: string, value: LazyJsonObject | null]> {
    for (const { name, start } of this.#members) yield [name, LazyJsonObject.at(this.#json, start)]
  }

  /** Source text of the value; null under the same conditions as `range`. */
  text(name: string): string | null {
    const range = this.range(name)
    return range === null ? null : sliceText(this.#json, range.start, range.end)
  }

  #last(name: string): Member | undefined {
    return this.#members.findLast((each) => each.name === name)
  }
}
