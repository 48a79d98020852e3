import { afterBlanks, memberOf, textBetween } from './json-scan.js'

// Pieces of JSON text that JSON.parse has accepted, so that they can travel on as the bytes they were.

/** The text of one field of an object, or null where it has none, or two of that name. */
export const fieldText = (object: string, name: string): string | null => {
  const json = Buffer.from(object)
  const span = memberOf(json, afterBlanks(json, 0), name)
  return span === null ? null : textBetween(json, span.start, span.end)
}

/** A frame holds one object per line. Inside strings newlines are escaped, so those that are left mean nothing. */
export const onOneLine = (json: string): string =>
  json.includes('\n') || json.includes('\r') ? json.replace(/[\n\r]+/g, ' ') : json

/** JSON.parse takes tens of milliseconds for so many objects and lists, however short they are. */
export const MAX_CONTAINERS = 50_000

const [QUOTE, BACKSLASH] = [0x22, 0x5c] as const
const [OPEN_LIST, OPEN_OBJECT] = [0x5b, 0x7b] as const

/** Whether parsing this JSON would make more objects and lists than `MAX_CONTAINERS`. Costs nothing for a text that is too short for that. */
export const hasTooManyContainers = (json: string): boolean => {
  if (json.length <= 2 * MAX_CONTAINERS) return false
  let containers = 0
  for (let next = 0; next < json.length; next++) {
    const character = json.charCodeAt(next)
    if (character === QUOTE) next = endOfString(json, next)
    else if (character === OPEN_LIST || character === OPEN_OBJECT) containers += 1
  }
  return containers > MAX_CONTAINERS
}

/** Where the closing quote is. */
const endOfString = (json: string, start: number): number => {
  for (let next = start + 1; next < json.length; next++) {
    const character = json.charCodeAt(next)
    if (character === QUOTE) return next
    if (character === BACKSLASH) next += 1
  }
  return json.length
}
