import type { JoinOrLeave, NewPublication, Publication } from '../../core/broker.js'

// How publications stand in Redis: a line of numbers, then the texts one after the other, just as they came. Nothing is
// escaped or written anew, and nothing of it is parsed but the numbers.
//
//   kept in the stream       time,delta,length of info,length of tags\n info tags data
//                            with a version behind the lengths where the publication has one
//   sent to subscribers     p offset,epoch,length,  and the same, once or more
//   joins and leaves        j info, l info

/** Null means none, and has a length of its own, because a text may be empty. */
const NONE = -1

/** What is kept of a publication; its offset is its place in the stream. */
export const encodeBody = ({ data, info, tags, delta, version }: NewPublication, time: number): string =>
  `${time},${delta ? 1 : 0},${info === null ? NONE : info.length},${tags === null ? NONE : tags.length}${
    version > 0 ? `,${version}` : ''
  }\n${info ?? ''}${tags ?? ''}${data}`

/** Without history there is nothing to be found it by. */
export const unplaced = (body: string): string => `p0,,${body.length},${body}`

export const encodeJoinOrLeave = (kind: JoinOrLeave, info: string): string => `${kind === 'join' ? 'j' : 'l'}${info}`

export type Message =
  | { readonly kind: 'publication'; readonly publication: Publication; readonly epoch: string }
  | { readonly kind: JoinOrLeave; readonly info: string }

/** None where it is not ours: anybody who may use the Redis can write anything. */
export const decodeMessages = (text: string): readonly Message[] => {
  if (text.startsWith('j{')) return [{ kind: 'join', info: text.slice(1) }]
  if (text.startsWith('l{')) return [{ kind: 'leave', info: text.slice(1) }]
  const messages: Message[] = []
  for (let at = 0; at < text.length; ) {
    HEAD.lastIndex = at
    const [head, offset, epoch = '', length] = HEAD.exec(text) ?? []
    if (head === undefined) return []
    const start = at + head.length
    at = start + Number(length)
    const publication = decodeBody(text.slice(start, at), Number(offset))
    if (publication === null || at > text.length) return []
    messages.push({ kind: 'publication', publication, epoch })
  }
  return messages
}

export const decodeBody = (text: string, offset: number): Publication | null => {
  const [head, time, delta, infoText, tagsText, version = '0'] = BODY_HEAD.exec(text) ?? []
  if (head === undefined) return null
  const infoLength = Number(infoText)
  const tagsLength = Number(tagsText)
  const infoEnd = head.length + Math.max(0, infoLength)
  const tagsEnd = infoEnd + Math.max(0, tagsLength)
  // Data is JSON, which has at least one character.
  if (text.length <= tagsEnd) return null
  return {
    data: text.slice(tagsEnd),
    offset,
    info: infoLength === NONE ? null : text.slice(head.length, infoEnd),
    tags: tagsLength === NONE ? null : text.slice(infoEnd, tagsEnd),
    time: Number(time),
    delta: delta === '1',
    version: Number(version)
  }
}

const HEAD = /p(\d{1,15}),([\w-]{0,64}),(\d{1,9}),/y
const BODY_HEAD = /^(\d{1,15}),([01]),(-1|\d{1,9}),(-1|\d{1,9})(?:,(\d{1,16}))?\n/
