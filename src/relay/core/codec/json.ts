/**
 * Validates JSON in UTF-8 bytes without creating values. Untouched parts keep their exact spelling, including numbers that
 * JavaScript cannot represent, and validation takes two thirds of the time of JSON.parse. Both accept the same texts.
 * `json-members.ts` searches objects.
 */

const [QUOTE, COMMA, COLON, BACKSLASH] = [0x22, 0x2c, 0x3a, 0x5c] as const
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d] as const
const [MINUS, PLUS, POINT, ZERO, SMALL_E, CAPITAL_E, SMALL_U] = [0x2d, 0x2b, 0x2e, 0x30, 0x65, 0x45, 0x75] as const

/** Returned instead of an index if the bytes are not JSON. */
export const INVALID = -1

const isWhitespace = (byte: number | undefined): boolean =>
  byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= ZERO && byte <= ZERO + 9

export const sliceText = (json: Buffer, start: number, end: number): string => json.toString('utf8', start, end)

/** Index of the first byte from `index` on that is not whitespace. */
export const skipWhitespace = (json: Buffer, index: number): number => {
  let next = index
  while (next < json.length && isWhitespace(json[next])) next += 1
  return next
}

export const isListAt = (json: Buffer, index: number): boolean => json[index] === OPEN_LIST

/** Validates the value that starts at `index`. Returns the index after it, or `INVALID`. */
export const skipValue = (json: Buffer, index: number): number => {
  const first = json[index]
  if (first === QUOTE) return skipString(json, index)
  return first === OPEN_OBJECT || first === OPEN_LIST ? skipContainer(json, index) : skipScalar(json, index)
}

const skipContainer = (json: Buffer, index: number): number => {
  // Opening bytes of the enclosing containers. A stack instead of recursion: deep nesting must not overflow the call stack.
  const open: number[] = []
  let next = index
  for (;;) {
    const byte = json[next]
    if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
      next = skipWhitespace(json, next + 1)
      if (json[next] !== closing(byte)) {
        open.push(byte)
        if (byte === OPEN_OBJECT) next = skipName(json, next)
        if (next === INVALID) return INVALID
        continue
      }
      next += 1
    } else {
      next = byte === QUOTE ? skipString(json, next) : skipScalar(json, next)
      if (next === INVALID) return INVALID
    }
    // A value has ended. Close all containers that end with it.
    let innermost = open[open.length - 1]
    while (innermost !== undefined) {
      next = skipWhitespace(json, next)
      if (json[next] !== closing(innermost)) break
      open.pop()
      innermost = open[open.length - 1]
      next += 1
    }
    if (innermost === undefined) return next
    if (json[next] !== COMMA) return INVALID
    next = skipWhitespace(json, next + 1)
    if (innermost === OPEN_OBJECT) next = skipName(json, next)
    if (next === INVALID) return INVALID
  }
}

const closing = (opening: number): number => (opening === OPEN_OBJECT ? CLOSE_OBJECT : CLOSE_LIST)

/** Validates a member name and its colon. Returns the index of the member's value. */
const skipName = (json: Buffer, index: number): number => {
  if (json[index] !== QUOTE) return INVALID
  const end = skipString(json, index)
  if (end === INVALID) return INVALID
  const colon = skipWhitespace(json, end)
  return json[colon] === COLON ? skipWhitespace(json, colon + 1) : INVALID
}

/** Reads one member of an object. */
export interface MemberReader {
  /** `name` and `start` are the indices of the member's name and value. Returns the index after the value, or `INVALID`. */
  readMember(json: Buffer, name: number, start: number): number
}

/** Passes each member of the object at `index` to the reader. Returns the index after the object, or `INVALID`. */
export const readMembers = (json: Buffer, index: number, reader: MemberReader): number => {
  if (json[index] !== OPEN_OBJECT) return INVALID
  let next = skipWhitespace(json, index + 1)
  if (json[next] === CLOSE_OBJECT) return next + 1
  for (;;) {
    const start = skipName(json, next)
    const end = start === INVALID ? INVALID : reader.readMember(json, next, start)
    if (end === INVALID) return INVALID
    next = skipWhitespace(json, end)
    if (json[next] === CLOSE_OBJECT) return next + 1
    if (json[next] !== COMMA) return INVALID
    next = skipWhitespace(json, next + 1)
  }
}

const FIRST_PRINTABLE = 0x20

const skipString = (json: Buffer, index: number): number => {
  const { length } = json
  for (let next = index + 1; next < length; next++) {
    const byte = json[next] ?? 0
    if (byte === QUOTE) return next + 1
    if (byte < FIRST_PRINTABLE) return INVALID
    if (byte !== BACKSLASH) continue
    next += 1
    const escaped = json[next]
    if (escaped === SMALL_U) {
      if (!isHex(json, next + 1, next + 5)) return INVALID
      next += 4
    } else if (escaped === undefined || !ESCAPABLE.includes(escaped)) return INVALID
  }
  return INVALID
}

const ESCAPABLE = Buffer.from('"\\/bfnrt')

const isHex = (json: Buffer, start: number, end: number): boolean => {
  for (let next = start; next < end; next++) {
    const byte = json[next] ?? 0
    const letter = byte | 0x20
    if (!isDigit(byte) && !(letter >= 0x61 && letter <= 0x66)) return false
  }
  return true
}

const KEYWORDS = ['true', 'false', 'null'].map((keyword) => Buffer.from(keyword))

const skipScalar = (json: Buffer, index: number): number => {
  const byte = json[index]
  if (byte === MINUS || isDigit(byte)) return skipNumber(json, index)
  const keyword = KEYWORDS.find((each) => each[0] === byte)
  const end = index + (keyword?.length ?? 0)
  return keyword?.equals(json.subarray(index, end)) ? end : INVALID
}

const skipNumber = (json: Buffer, index: number): number => {
  const start = json[index] === MINUS ? index + 1 : index
  // A leading zero may only be followed by a fraction or an exponent.
  let next = json[start] === ZERO ? start + 1 : skipDigits(json, start)
  if (next !== INVALID && json[next] === POINT) next = skipDigits(json, next + 1)
  if (next !== INVALID && (json[next] === SMALL_E || json[next] === CAPITAL_E)) {
    const sign = json[next + 1]
    next = skipDigits(json, sign === PLUS || sign === MINUS ? next + 2 : next + 1)
  }
  return next
}

/** Skips one or more digits. */
const skipDigits = (json: Buffer, index: number): number => {
  let next = index
  while (isDigit(json[next])) next += 1
  return next === index ? INVALID : next
}

/** Parses a JSON string; null if the text is not one. */
export const parseString = (raw: string): string | null => {
  try {
    const value: unknown = JSON.parse(raw)
    return typeof value === 'string' ? value : null
  } catch {
    return null
  }
}

/**
 * Calls back with start and end of each element of the list at `index`. Returns the index after the list, or `INVALID` if
 * the list is invalid or the callback returned false.
 */
export const forEachElement = (json: Buffer, index: number, each: (start: number, end: number) => boolean): number => {
  let next = skipWhitespace(json, index + 1)
  if (json[next] === CLOSE_LIST) return next + 1
  for (;;) {
    const end = skipValue(json, next)
    if (end === INVALID || !each(next, end)) return INVALID
    next = skipWhitespace(json, end)
    if (json[next] === CLOSE_LIST) return next + 1
    if (json[next] !== COMMA) return INVALID
    next = skipWhitespace(json, next + 1)
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The text of a JSON value on one line; null if the bytes are not JSON in UTF-8. */
export const jsonFromBytes = (bytes: Buffer): string | null => {
  const end = skipValue(bytes, skipWhitespace(bytes, 0))
  if (end === INVALID || skipWhitespace(bytes, end) !== bytes.length) return null
  try {
    return onOneLine(utf8.decode(bytes))
  } catch {
    return null
  }
}

/** Frames are separated by newlines. Strings contain only escaped newlines, so the others can be replaced by spaces. */
export const onOneLine = (json: string): string =>
  json.includes('\n') || json.includes('\r') ? json.replace(/[\n\r]+/g, ' ') : json

/** JSON.parse takes tens of milliseconds for this number of objects and lists, however small they are. */
export const MAX_CONTAINERS = 50_000

/** Whether parsing would create more than `MAX_CONTAINERS` objects and lists. Short texts are not scanned. */
export const hasTooManyContainers = (text: string): boolean => {
  if (text.length <= 2 * MAX_CONTAINERS) return false
  const json = Buffer.from(text)
  let containers = 0
  let isInString = false
  for (let index = 0; index < json.length; index++) {
    const byte = json[index]
    if (byte === QUOTE) isInString = !isInString
    else if (byte === BACKSLASH) index += 1
    else if (!isInString && (byte === OPEN_LIST || byte === OPEN_OBJECT)) containers += 1
  }
  return containers > MAX_CONTAINERS
}
