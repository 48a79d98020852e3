import { afterBlanks, afterValue, eachEntry } from './json-scan.js'

// Pieces of JSON text that JSON.parse has accepted, so that they can travel on as the bytes they were.

const [QUOTE, COMMA, BACKSLASH] = [0x22, 0x2c, 0x5c] as const

/** The text of one field of an object, or null where it has none, or two of that name. */
export const fieldText = (object: string, name: string): string | null => {
  const quoted = `"${name}"`
  let found: string | null = null
  let place = afterBlanks(object, afterBlanks(object, 0) + 1)
  while (object.charCodeAt(place) === QUOTE) {
    const nameEnd = afterValue(object, place)
    const start = afterBlanks(object, afterBlanks(object, nameEnd) + 1)
    const end = afterValue(object, start)
    if (isSameName(object.slice(place, nameEnd), quoted)) {
      if (found !== null) return null
      found = object.slice(start, end)
    }
    place = afterBlanks(object, end)
    if (object.charCodeAt(place) === COMMA) place = afterBlanks(object, place + 1)
  }
  return found
}

const isSameName = (raw: string, quoted: string): boolean =>
  raw === quoted || (raw.includes('\\') && JSON.stringify(JSON.parse(raw)) === quoted)

/** The texts of the entries of a list. */
export const entryTexts = (list: string): string[] => {
  const entries: string[] = []
  eachEntry(list, afterBlanks(list, 0), (start, end) => {
    entries.push(list.slice(start, end))
    return true
  })
  return entries
}

/** Values that follow one another with blanks in between, as in a body of several commands. Nobody has parsed this yet. */
export const valueTexts = (text: string): string[] => {
  const values: string[] = []
  for (let start = afterBlanks(text, 0); start < text.length; ) {
    const end = valueEnd(text, start)
    values.push(text.slice(start, end))
    start = afterBlanks(text, end)
  }
  return values
}

/** What never ends, ends with the text. */
const valueEnd = (text: string, start: number): number => {
  let depth = 0
  let isInString = false
  for (let place = start; place < text.length; place++) {
    const code = text.charCodeAt(place)
    if (isInString) {
      if (code === BACKSLASH) place++
      else if (code === QUOTE) isInString = false
      continue
    }
    const character = text[place] as string
    if (code === QUOTE) isInString = true
    else if ('{['.includes(character)) depth++
    else if ('}]'.includes(character)) {
      if (--depth <= 0) return place + 1
    } else if (depth === 0 && ' \t\r\n'.includes(character)) return place
  }
  return text.length
}

/** A frame holds one object per line. Inside strings newlines are escaped, so those that are left mean nothing. */
export const onOneLine = (json: string): string =>
  json.includes('\n') || json.includes('\r') ? json.replace(/[\n\r]+/g, ' ') : json
