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
