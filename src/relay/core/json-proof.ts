import { afterBlanks } from './json-scan.js'

// Proves that bytes are JSON without making values of them, in two thirds of the time of JSON.parse: most of what is published is
// never looked into, only passed on. It takes what JSON.parse takes of the same text, and nothing else.

const [QUOTE, COMMA, COLON, BACKSLASH] = [0x22, 0x2c, 0x3a, 0x5c] as const
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d] as const
const [MINUS, PLUS, POINT, ZERO, SMALL_E, CAPITAL_E, SMALL_U] = [0x2d, 0x2b, 0x2e, 0x30, 0x65, 0x45, 0x75] as const

/** The answer where there is no JSON. */
export const NO_VALUE = -1

const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= ZERO && byte <= ZERO + 9

/** Behind the value that begins here, or `NO_VALUE`. */
export const afterProvenValue = (json: Buffer, place: number): number => {
  // What is open, innermost last. Not by recursion: a body of brackets would end the stack.
  const open: number[] = []
  let next = place
  for (;;) {
    const byte = json[next]
    if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
      next = afterBlanks(json, next + 1)
      if (json[next] !== closing(byte)) {
        open.push(byte)
        if (byte === OPEN_OBJECT) next = afterProvenName(json, next)
        if (next === NO_VALUE) return NO_VALUE
        continue
      }
      next += 1
    } else {
      next = byte === QUOTE ? afterProvenString(json, next) : afterProvenWord(json, next)
      if (next === NO_VALUE) return NO_VALUE
    }
    // A value has ended, and whatever ends with it.
    let innermost = open[open.length - 1]
    while (innermost !== undefined) {
      next = afterBlanks(json, next)
      if (json[next] !== closing(innermost)) break
      open.pop()
      innermost = open[open.length - 1]
      next += 1
    }
    if (innermost === undefined) return next
    if (json[next] !== COMMA) return NO_VALUE
    next = afterBlanks(json, next + 1)
    if (innermost === OPEN_OBJECT) next = afterProvenName(json, next)
    if (next === NO_VALUE) return NO_VALUE
  }
}

const closing = (opening: number): number => (opening === OPEN_OBJECT ? CLOSE_OBJECT : CLOSE_LIST)

/** Where the value of the member begins whose name begins here. */
export const afterProvenName = (json: Buffer, place: number): number => {
  if (json[place] !== QUOTE) return NO_VALUE
  const end = afterProvenString(json, place)
  if (end === NO_VALUE) return NO_VALUE
  const colon = afterBlanks(json, end)
  return json[colon] === COLON ? afterBlanks(json, colon + 1) : NO_VALUE
}

const FIRST_PRINTABLE = 0x20

export const afterProvenString = (json: Buffer, place: number): number => {
  const { length } = json
  for (let next = place + 1; next < length; next++) {
    const byte = json[next] as number
    if (byte === QUOTE) return next + 1
    if (byte < FIRST_PRINTABLE) return NO_VALUE
    if (byte !== BACKSLASH) continue
    next += 1
    const escaped = json[next]
    if (escaped === SMALL_U) {
      if (!isHex(json, next + 1, next + 5)) return NO_VALUE
      next += 4
    } else if (escaped === undefined || !ESCAPABLE.includes(escaped)) return NO_VALUE
  }
  return NO_VALUE
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

const WORDS = ['true', 'false', 'null'].map((word) => Buffer.from(word))

const afterProvenWord = (json: Buffer, place: number): number => {
  const byte = json[place]
  if (byte === MINUS || isDigit(byte)) return afterProvenNumber(json, place)
  const word = WORDS.find((each) => each[0] === byte)
  const end = place + (word?.length ?? 0)
  return word?.equals(json.subarray(place, end)) ? end : NO_VALUE
}

const afterProvenNumber = (json: Buffer, place: number): number => {
  const start = json[place] === MINUS ? place + 1 : place
  // Nothing follows a zero at the beginning but what makes a fraction of it.
  let next = json[start] === ZERO ? start + 1 : afterDigits(json, start)
  if (next !== NO_VALUE && json[next] === POINT) next = afterDigits(json, next + 1)
  if (next !== NO_VALUE && (json[next] === SMALL_E || json[next] === CAPITAL_E)) {
    const sign = json[next + 1]
    next = afterDigits(json, sign === PLUS || sign === MINUS ? next + 2 : next + 1)
  }
  return next
}

/** At least one. */
const afterDigits = (json: Buffer, place: number): number => {
  let next = place
  while (isDigit(json[next])) next += 1
  return next === place ? NO_VALUE : next
}
