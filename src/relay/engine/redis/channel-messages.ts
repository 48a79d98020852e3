import type { JoinOrLeave } from '../../core/engine.js'
import type { NewPublication, Publication, Published } from '../../core/publication.js'
import { type Decoded, type DeliveredPublication, decodeMapChangeAt } from './map-messages.js'

// Publications are stored and sent as a line of numbers, followed by the JSON texts unchanged. Nothing is escaped, and only the
// numbers are parsed. Binary data is in base64, marked by a b at the end of the line.
//
//   entry of the stream   time,delta,length of info,length of tags[,version][b][t traceparent]\n info tags data
//   pub/sub message       p offset,epoch,length,entry   one or more of them
//   change of a map       see map-messages.ts
//   join, leave           j info   l info

/** Length of info or tags that is null; an empty text has length 0. */
const ABSENT = -1

const MESSAGE_HEADER = /p(\d{1,15}),([\w-]{0,64}),(\d{1,9}),/y
const BODY_HEADER = /^(\d{1,15}),([01]),(-1|\d{1,9}),(-1|\d{1,9})(?:,(\d{1,16}))?(b?)(?:t([\da-f-]{55}))?\n/

/** The stored form of a publication. Its offset is not part of it: the id of the stream entry has it. */
export const encodeBody = ({ data, info, tags, delta, version, trace }: NewPublication, time: number): string =>
  `${time},${delta ? 1 : 0},${info === null ? ABSENT : info.length},${tags === null ? ABSENT : tags.length}${
    version > 0 ? `,${version}` : ''
  }${typeof data === 'string' ? '' : 'b'}${trace === undefined ? '' : `t${trace}`}\n${info ?? ''}${tags ?? ''}${typeof data === 'string' ? data : data.toString('base64')}`

/** The pub/sub message of a publication on a channel without history. */
export const encodeWithoutPosition = (body: string): string => `p0,,${body.length},${body}`

export const encodeJoinOrLeave = (kind: JoinOrLeave, info: string): string => `${kind === 'join' ? 'j' : 'l'}${info}`

export type Message = DeliveredPublication | { readonly kind: JoinOrLeave; readonly info: string }

/** Empty for a malformed message: every client of the Redis server can publish anything. */
export const decodeMessages = (text: string): readonly Message[] => {
  if (text.startsWith('j{')) return [{ kind: 'join', info: text.slice(1) }]
  if (text.startsWith('l{')) return [{ kind: 'leave', info: text.slice(1) }]
  const messages: Message[] = []
  for (let index = 0; index < text.length; ) {
    const decoded = text[index] === 'm' ? decodeMapChangeAt(text, index) : decodePublicationAt(text, index)
    if (decoded === null) return []
    messages.push(decoded.value)
    index = decoded.end
  }
  return messages
}

const decodePublicationAt = (text: string, index: number): Decoded<DeliveredPublication> | null => {
  MESSAGE_HEADER.lastIndex = index
  const [header, offset, epoch = '', length] = MESSAGE_HEADER.exec(text) ?? []
  if (header === undefined) return null
  const start = index + header.length
  const end = start + Number(length)
  const publication = end > text.length ? null : decodeBody(text.slice(start, end), Number(offset))
  return publication && { value: { kind: 'publication', publication, epoch }, end }
}

/** Null for a malformed body. */
export const decodeBody = (text: string, offset: number): Publication | null => {
  const [header, time, delta, infoText, tagsText, version = '0', binary, trace] = BODY_HEADER.exec(text) ?? []
  if (header === undefined) return null
  const infoLength = Number(infoText)
  const tagsLength = Number(tagsText)
  const infoEnd = header.length + Math.max(0, infoLength)
  const tagsEnd = infoEnd + Math.max(0, tagsLength)
  // JSON has at least one character.
  if (text.length < tagsEnd || (text.length === tagsEnd && binary !== 'b')) return null
  return {
    data: binary === 'b' ? Buffer.from(text.slice(tagsEnd), 'base64') : text.slice(tagsEnd),
    offset,
    info: infoLength === ABSENT ? null : text.slice(header.length, infoEnd),
    tags: tagsLength === ABSENT ? null : text.slice(infoEnd, tagsEnd),
    time: Number(time),
    delta: delta === '1',
    version: Number(version),
    ...(trace !== undefined && { trace })
  }
}

const SUPPRESSED_BY: Readonly<Record<string, Published['suppressedBy']>> = { i: 'idempotency', v: 'version' }

/** Parses the reply of a publish script: a letter, the offset, a comma and the epoch, as in `p42,epoch`. */
export const parsePublished = (reply: string): Published => {
  const comma = reply.indexOf(',')
  const suppressedBy = SUPPRESSED_BY[reply.charAt(0)] ?? null
  return { offset: Number(reply.slice(1, comma)), epoch: reply.slice(comma + 1), suppressedBy }
}
