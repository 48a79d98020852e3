import { afterProvenName, afterProvenString, afterProvenValue, NO_VALUE } from './json-proof.js'
import { afterBlanks, parsedString, type Span, textBetween } from './json-scan.js'
import { hasTooManyContainers } from './json-text.js'

const [COMMA, OPEN_OBJECT, CLOSE_OBJECT] = [0x2c, 0x7b, 0x7d] as const

/** No `Error`: it is answered, and nobody sees its stack. */
export class TooManyContainers {}

/** An object as it came: values are made only of those members that somebody asks for. */
export class JsonObject {
  /** Behind it. */
  readonly end: number
  readonly #json: Buffer
  readonly #members: readonly Member[]

  private constructor(json: Buffer, members: readonly Member[], end: number) {
    this.#json = json
    this.#members = members
    this.end = end
  }

  /** The object that begins here; null where none does, or what begins there is no JSON. */
  static at(json: Buffer, place: number): JsonObject | null {
    if (json[place] !== OPEN_OBJECT) return null
    const members: Member[] = []
    let next = afterBlanks(json, place + 1)
    if (json[next] === CLOSE_OBJECT) return new JsonObject(json, members, next + 1)
    for (;;) {
      const start = afterProvenName(json, next)
      const end = start === NO_VALUE ? NO_VALUE : afterProvenValue(json, start)
      if (end === NO_VALUE) return null
      members.push({ name: nameAt(json, next), start, end })
      next = afterBlanks(json, end)
      if (json[next] === CLOSE_OBJECT) return new JsonObject(json, members, next + 1)
      if (json[next] !== COMMA) return null
      next = afterBlanks(json, next + 1)
    }
  }

  get names(): readonly string[] {
    return this.#members.map(({ name }) => name)
  }

  /**
   * Of several with this name the last counts, as it does for JSON.parse. Throws `TooManyContainers` where making the value
   * would block the event loop.
   */
  value(name: string): unknown {
    const member = this.#last(name)
    if (member === undefined) return undefined
    const text = textBetween(this.#json, member.start, member.end)
    if (hasTooManyContainers(text)) throw new TooManyContainers()
    return JSON.parse(text)
  }

  /** The value where its text is at most so long, else undefined. */
  shortValue(name: string, maxBytes: number): unknown {
    const member = this.#last(name)
    return member === undefined || member.end - member.start > maxBytes ? undefined : this.value(name)
  }

  has(name: string): boolean {
    return this.#members.some((each) => each.name === name)
  }

  /** Where the value is; null where there is none, or more than one: then readers do not agree which one counts. */
  place(name: string): Span | null {
    const members = this.#members.filter((each) => each.name === name)
    return members.length === 1 ? (members[0] ?? null) : null
  }

  /** The value as it was spelt. */
  text(name: string): string | null {
    const place = this.place(name)
    return place === null ? null : textBetween(this.#json, place.start, place.end)
  }

  #last(name: string): Member | undefined {
    return this.#members.findLast((each) => each.name === name)
  }
}

interface Member extends Span {
  readonly name: string
}

const nameAt = (json: Buffer, place: number): string => {
  const raw = textBetween(json, place, afterProvenString(json, place))
  return raw.includes('\\') ? (parsedString(raw) ?? '') : raw.slice(1, -1)
}
