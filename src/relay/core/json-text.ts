import { afterBlanks, afterValue, eachEntry, memberOf, textBetween } from './json-scan.js'

// Pieces of JSON text that JSON.parse has accepted, so that they can travel on as the bytes they were.

/** The text of one field of an object, or null where it has none, or two of that name. */
export const fieldText = (object: string, name: string): string | null => {
  const json = Buffer.from(object)
  const span = memberOf(json, afterBlanks(json, 0), name)
  return span === null ? null : textBetween(json, span.start, span.end)
}

/** The texts of the entries of a list. */
export const entryTexts = (list: string): string[] => {
  const json = Buffer.from(list)
  const entries: string[] = []
  eachEntry(json, afterBlanks(json, 0), (start, end) => {
    entries.push(textBetween(json, start, end))
    return true
  })
  return entries
}

/** Values that follow one another with blanks in between, as in a body of several commands. Nobody has parsed this yet. */
export const valueTexts = (text: string): string[] => {
  const json = Buffer.from(text)
  const values: string[] = []
  for (let start = afterBlanks(json, 0); start < json.length; ) {
    // What is no JSON would stand still at what ends a word.
    const end = Math.max(afterValue(json, start), start + 1)
    values.push(textBetween(json, start, end))
    start = afterBlanks(json, end)
  }
  return values
}

/** A frame holds one object per line. Inside strings newlines are escaped, so those that are left mean nothing. */
export const onOneLine = (json: string): string =>
  json.includes('\n') || json.includes('\r') ? json.replace(/[\n\r]+/g, ' ') : json
