// Finds places in JSON text without making values of it: what is not touched keeps its exact spelling, numbers that
// JavaScript cannot hold included. The text must be JSON; that was proved when it was published.

const [QUOTE, COMMA, BACKSLASH] = [0x22, 0x2c, 0x5c] as const
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d] as const

const isBlank = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09

/** The first place from `place` on that is no blank. */
export const afterBlanks = (text: string, place: number): number => {
  let next = place
  while (isBlank(text.charCodeAt(next))) next += 1
  return next
}

export const isObjectAt = (text: string, place: number): boolean => text.charCodeAt(place) === OPEN_OBJECT
export const isListAt = (text: string, place: number): boolean => text.charCodeAt(place) === OPEN_LIST

/** Behind the string that begins here. */
const afterString = (text: string, place: number): number => {
  let end = text.indexOf('"', place + 1)
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1)
  return end + 1
}

const isEscaped = (text: string, quote: number): boolean => {
  let before = quote - 1
  while (text.charCodeAt(before) === BACKSLASH) before -= 1
  return (quote - before) % 2 === 0
}

/** Behind the value that begins here. */
export const afterValue = (text: string, place: number): number => {
  const code = text.charCodeAt(place)
  if (code === QUOTE) return afterString(text, place)
  if (code === OPEN_OBJECT || code === OPEN_LIST) return afterBrackets(text, place)
  return afterWord(text, place)
}

const afterBrackets = (text: string, place: number): number => {
  let depth = 0
  let next = place
  for (;;) {
    const code = text.charCodeAt(next)
    if (code === QUOTE) {
      next = afterString(text, next)
      continue
    }
    if (code === OPEN_OBJECT || code === OPEN_LIST) depth += 1
    else if (code === CLOSE_OBJECT || code === CLOSE_LIST) depth -= 1
    next += 1
    if (depth === 0) return next
  }
}

/** A number, true, false or null. */
const afterWord = (text: string, place: number): number => {
  let next = place
  for (;;) {
    const code = text.charCodeAt(next)
    if (Number.isNaN(code) || code === COMMA || code === CLOSE_LIST || code === CLOSE_OBJECT || isBlank(code))
      return next
    next += 1
  }
}

/**
 * Where the member's value begins in the object at `place`; -1 where it has none of that name, or more than one: then
 * readers do not agree which one counts.
 */
export const memberOf = (text: string, place: number, name: string): number => {
  let found = -1
  let next = afterBlanks(text, place + 1)
  if (text.charCodeAt(next) === CLOSE_OBJECT) return -1
  for (;;) {
    const nameEnd = afterString(text, next)
    const value = afterBlanks(text, afterBlanks(text, nameEnd) + 1)
    if (isName(text, next, nameEnd, name)) {
      if (found !== -1) return -1
      found = value
    }
    next = afterBlanks(text, afterValue(text, value))
    if (text.charCodeAt(next) !== COMMA) return found
    next = afterBlanks(text, next + 1)
  }
}

const isName = (text: string, start: number, end: number, name: string): boolean => {
  if (end - start - 2 === name.length && text.startsWith(name, start + 1)) return true
  const raw = text.slice(start, end)
  return raw.includes('\\') && JSON.parse(raw) === name
}

/** Calls back with begin and end of each entry of the list at `place`; tells where the list ends, or -1 where `each` refused. */
export const eachEntry = (text: string, place: number, each: (start: number, end: number) => boolean): number => {
  let next = afterBlanks(text, place + 1)
  if (text.charCodeAt(next) === CLOSE_LIST) return next + 1
  for (;;) {
    const end = afterValue(text, next)
    if (!each(next, end)) return -1
    next = afterBlanks(text, end)
    if (text.charCodeAt(next) !== COMMA) return next + 1
    next = afterBlanks(text, next + 1)
  }
}
