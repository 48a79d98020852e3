import type { MapChanged, MapSuppression, MapWrite } from '../../core/engine.js'
import type { Publication } from '../../core/publication.js'

// Entries of maps are stored and sent as a line of numbers, the tags on a line of their own, and the other texts unchanged. The
// scripts read the tags, because the removal of an entry carries them. A removal is marked by an r at the end of the first line,
// binary data in base64 by a b.
//
//   body               time,delta,length of key,length of info,version[r|b][t traceparent]\n tags \n key info data
//   entry of the map   offset,length of the body,body
//   entry of a stream  body; its id has the offset
//   pub/sub message    m epoch,1 with the previous entry or 0,entry[previous entry]   one or more of them

/** Length of info that is null. */
const ABSENT = -1

const CHANGE_HEADER = /m([\w-]{0,64}),([01]),/y
const ENTRY_HEADER = /(\d{1,15}),(\d{1,9}),/y
const BODY_HEADER = /^(\d{1,15}),([01]),(\d{1,5}),(-1|\d{1,9}),(\d{1,16})([rb]?)(?:t([\da-f-]{55}))?\n([^\n]*)\n/

export const encodeMapBody = ({ key, data, info, tags, delta, version, trace }: MapWrite, time: number): string => {
  const isText = typeof data === 'string'
  const numbers = `${time},${delta ? 1 : 0},${key.length},${info === null ? ABSENT : info.length},${version}`
  const marks = `${isText ? '' : 'b'}${trace === undefined ? '' : `t${trace}`}`
  const line = tags === null ? '' : tags.replaceAll('\n', ' ')
  return `${numbers}${marks}\n${line}\n${key}${info ?? ''}${isText ? data : data.toString('base64')}`
}

/** Null for a malformed body. */
export const decodeMapBody = (text: string, offset: number): Publication | null => {
  const [header, time, delta, keyLength, infoText, version, mark, trace, tags = ''] = BODY_HEADER.exec(text) ?? []
  if (header === undefined) return null
  const keyEnd = header.length + Number(keyLength)
  const infoEnd = keyEnd + Math.max(0, Number(infoText))
  const isRemoval = mark === 'r'
  // A key, and JSON data, have at least one character.
  if (keyLength === '0' || text.length < infoEnd || (mark === '' && text.length === infoEnd)) return null
  const data = text.slice(infoEnd)
  return {
    data: isRemoval ? 'null' : mark === 'b' ? Buffer.from(data, 'base64') : data,
    offset,
    info: Number(infoText) === ABSENT ? null : text.slice(keyEnd, infoEnd),
    tags: tags === '' ? null : tags,
    time: Number(time),
    delta: delta === '1',
    version: Number(version),
    key: text.slice(header.length, keyEnd),
    ...(isRemoval && { removed: true }),
    ...(trace !== undefined && { trace })
  }
}

/** A part of a message. */
export interface Decoded<T> {
  readonly value: T
  /** Index of the first character after it. */
  readonly end: number
}

/** Decodes the entry at an index of a text. */
const decodeEntryAt = (text: string, index: number): Decoded<Publication> | null => {
  ENTRY_HEADER.lastIndex = index
  const [header, offset, length] = ENTRY_HEADER.exec(text) ?? []
  if (header === undefined) return null
  const start = index + header.length
  const end = start + Number(length)
  const value = end > text.length ? null : decodeMapBody(text.slice(start, end), Number(offset))
  return value === null ? null : { value, end }
}

/** Null for a malformed entry. */
export const decodeMapEntry = (text: string): Publication | null => {
  const entry = decodeEntryAt(text, 0)
  return entry?.end === text.length ? entry.value : null
}

/** A publication of a message, and the epoch of its map. */
export interface DeliveredPublication {
  readonly kind: 'publication'
  readonly publication: Publication
  readonly epoch: string
}

/** Decodes the change of a map at an index of a message; null if it is malformed. */
export const decodeMapChangeAt = (text: string, index: number): Decoded<DeliveredPublication> | null => {
  CHANGE_HEADER.lastIndex = index
  const [header, epoch = '', hasPrevious] = CHANGE_HEADER.exec(text) ?? []
  const entry = header === undefined ? null : decodeEntryAt(text, index + header.length)
  if (entry === null) return null
  if (hasPrevious === '0') return { value: { kind: 'publication', publication: entry.value, epoch }, end: entry.end }
  const replaced = decodeEntryAt(text, entry.end)
  if (replaced === null) return null
  const { data, tags } = replaced.value
  const publication: Publication = { ...entry.value, previous: { data, tags } }
  return { value: { kind: 'publication', publication, epoch }, end: replaced.end }
}

const SUPPRESSED_BY: Readonly<Record<string, MapSuppression>> = {
  i: 'idempotency',
  v: 'version',
  x: 'key_exists',
  n: 'key_not_found'
}

/** Parses a reply of CHANGE_MAP. */
export const parseMapChanged = (reply: string): MapChanged | 'full' => {
  const letter = reply.charAt(0)
  if (letter === 'f') return 'full'
  const comma = reply.indexOf(',')
  const suppressedBy = SUPPRESSED_BY[letter] ?? null
  return { offset: Number(reply.slice(1, comma)), epoch: reply.slice(comma + 1), suppressedBy }
}
