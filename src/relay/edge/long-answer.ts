import type { ServerResponse } from 'node:http'
import type { MaybePromise } from '../core/maybe-promise.js'
import { Slices } from '../core/slices.js'
import { answer, type Headers } from './http-answer.js'

/** A body of several texts, one after the other. Joining them would copy all of them at once. */
export class LongText {
  readonly texts: readonly string[]

  constructor(texts: readonly string[]) {
    this.texts = texts
  }

  toString(): string {
    return this.texts.join('')
  }
}

/** A body up to here is answered at once. */
const SHORT_LENGTH = 256 * 1024
const PART_LENGTH = 64 * 1024

/** Answers with a body that may be long: it is encoded in slices, so that everybody else is served in between. */
export const answerLong = (
  response: ServerResponse,
  status: number,
  body: string | LongText,
  headers: Headers
): MaybePromise<void> => {
  const texts = typeof body === 'string' ? [body] : body.texts
  let length = 0
  for (const text of texts) length += text.length
  if (length > SHORT_LENGTH) return answerInSlices(response, status, texts, headers)
  answer(response, status, texts.join(''), headers)
}

const answerInSlices = async (
  response: ServerResponse,
  status: number,
  texts: readonly string[],
  headers: Headers
): Promise<void> => {
  const slices = new Slices()
  const encoded: Buffer[] = []
  let bytes = 0
  for (const part of partsOf(texts)) {
    const buffer = Buffer.from(part)
    encoded.push(buffer)
    bytes += buffer.length
    if (slices.isOver) await slices.next()
  }
  if (response.destroyed) return
  response.writeHead(status, ['Content-Length', String(bytes), ...headers])
  for (const buffer of encoded) response.write(buffer)
  response.end()
}

/** The same text in parts of about `PART_LENGTH`. */
const partsOf = function* (texts: readonly string[]): Generator<string> {
  let short: string[] = []
  let length = 0
  for (const text of texts) {
    if (length + text.length < PART_LENGTH) {
      short.push(text)
      length += text.length
      continue
    }
    yield short.join('')
    short = []
    length = 0
    if (text.length < PART_LENGTH) {
      short.push(text)
      length = text.length
    } else yield* cut(text)
  }
  yield short.join('')
}

const cut = function* (text: string): Generator<string> {
  for (let start = 0; start < text.length; ) {
    let end = start + PART_LENGTH
    // Not between the two halves of a character.
    if (isHighSurrogate(text.charCodeAt(end - 1))) end += 1
    yield text.slice(start, end)
    start = end
  }
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff
