// Finds places in JSON without making values of it: what is not touched keeps its exact spelling, numbers that JavaScript
// cannot hold included. It reads UTF-8 bytes, three times as fast as the characters of a string. What is no JSON has no
// places that mean anything, but every search in it comes to an end.

const [QUOTE, COMMA, BACKSLASH] = [0x22, 0x2c, 0x5c] as const
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d] as const

const isBlank = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

export const textBetween = (json: Buffer, start: number, end: number): string => json.toString('utf8', start, end)

/** The first place from `place` on that is no blank. */
export const afterBlanks = (json: Buffer, place: number): number => {
  let next = place
  while (next < json.length && isBlank(json[next])) next += 1
  return next
}

export const isObjectAt = (json: Buffer, place: number): boolean => json[place] === OPEN_OBJECT
export const isListAt = (json: Buffer, place: number): boolean => json[place] === OPEN_LIST
const isStringAt = (json: Buffer, place: number): boolean => json[place] === QUOTE
const isCommaAt = (json: Buffer, place: number): boolean => json[place] === COMMA

/** Behind the value that begins here. */
export const afterValue = (json: Buffer, place: number): number => {
  const byte = json[place]
  if (byte === QUOTE) return afterString(json, place)
  if (byte === OPEN_OBJECT || byte === OPEN_LIST) return afterBrackets(json, place)
  return afterWord(json, place)
}

const afterString = (json: Buffer, place: number): number => {
  const { length } = json
  for (let next = place + 1; next < length; next++) {
    const byte = json[next]
    if (byte === QUOTE) return next + 1
    if (byte === BACKSLASH) next += 1
  }
  return length
}

const afterBrackets = (json: Buffer, place: number): number => {
  const { length } = json
  let depth = 0
  let next = place
  while (next < length) {
    const byte = json[next]
    if (byte === QUOTE) {
      next = afterString(json, next)
      continue
    }
    next += 1
    if (byte === OPEN_OBJECT || byte === OPEN_LIST) depth += 1
    else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) {
      depth -= 1
      if (depth === 0) return next
    }
  }
  return length
}

/** A number, true, false or null. */
const afterWord = (json: Buffer, place: number): number => {
  let next = place
  while (next < json.length) {
    const byte = json[next]
    if (byte === COMMA || byte === CLOSE_LIST || byte === CLOSE_OBJECT || isBlank(byte)) break
    next += 1
  }
  return next
}

/** Where a value begins and ends. */
export interface Span {
  readonly start: number
  readonly end: number
}

/**
 * The member's value in the object at `place`; null where it has none of that name, or more than one: then readers do not
 * agree which one counts.
 */
export const memberOf = (json: Buffer, place: number, name: string): Span | null => {
  let found: Span | null = null
  let next = afterBlanks(json, place + 1)
  while (isStringAt(json, next)) {
    const nameEnd = afterString(json, next)
    const start = afterBlanks(json, afterBlanks(json, nameEnd) + 1)
    const end = afterValue(json, start)
    if (isName(json, next, nameEnd, name)) {
      if (found !== null) return null
      found = { start, end }
    }
    next = afterBlanks(json, end)
    if (!isCommaAt(json, next)) break
    next = afterBlanks(json, next + 1)
  }
  return found
}

/** Whether the string from `start` to `end` says so. The first byte tells most names apart. */
const isName = (json: Buffer, start: number, end: number, name: string): boolean => {
  const [first, byte] = [name.charCodeAt(0), json[start + 1]]
  if (first < 0x80 && byte !== first && byte !== BACKSLASH) return false
  const raw = textBetween(json, start, end)
  return raw === `"${name}"` || (raw.includes('\\') && parsedString(raw) === name)
}

/** What a string says; null where it is none. */
export const parsedString = (raw: string): string | null => {
  try {
    return JSON.parse(raw)
  } catch {
    return null
  }
}

/** Calls back with begin and end of each entry of the list at `place`; tells where the list ends, or -1 where `each` refused. */
export const eachEntry = (json: Buffer, place: number, each: (start: number, end: number) => boolean): number => {
  let next = afterBlanks(json, place + 1)
  if (json[next] === CLOSE_LIST) return next + 1
  for (;;) {
    const end = afterValue(json, next)
    if (!each(next, end)) return -1
    next = afterBlanks(json, end)
    if (!isCommaAt(json, next)) return next + 1
    next = afterBlanks(json, next + 1)
  }
}
