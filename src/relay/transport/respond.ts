import type { IncomingMessage, ServerResponse } from 'node:http'
import type { MaybePromise } from '../core/broker.js'
import type { Log } from '../core/context.js'
import { TimeSlice } from '../core/time-slice.js'

export type Headers = readonly string[]

/** `path` is the path of the request without its query. */
export type HttpHandler = (request: IncomingMessage, response: ServerResponse, path: string) => void

/** One write for head and body; headers as a flat list, which Node does not have to take apart. */
export const respond = (response: ServerResponse, status: number, body = '', headers: Headers = []): void => {
  response.writeHead(status, ['Content-Length', String(Buffer.byteLength(body)), ...headers])
  response.end(body)
}

export const JSON_TYPE: Headers = ['Content-Type', 'application/json']
export const TEXT_TYPE: Headers = ['Content-Type', 'text/plain; charset=utf-8']

/** Neither caches nor proxies may hold back what is said; and where a stream ends, nothing follows. */
export const STREAM_HEADERS: Headers = [
  'Cache-Control',
  'no-store, no-transform',
  'X-Accel-Buffering',
  'no',
  'Connection',
  'close'
]

/** Hands over the whole body, or answers 413, with these headers, where it is too long. A request that breaks off is never handed over. */
export const readBody = (
  request: IncomingMessage,
  response: ServerResponse,
  maxBytes: number,
  done: (body: Buffer) => void,
  headers: Headers = []
): void => {
  const announced = Number(request.headers['content-length'] ?? 0)
  if (announced > maxBytes) {
    refuseBody(request, response, headers)
    return
  }
  let first: Buffer | null = null
  let chunks: Buffer[] | null = null
  let length = 0
  request.on('data', (chunk: Buffer) => {
    length += chunk.length
    if (length > maxBytes) {
      if (!response.headersSent) refuseBody(request, response, headers)
      return
    }
    if (first === null) first = chunk
    else {
      chunks ??= [first]
      chunks.push(chunk)
    }
  })
  request.on('end', () => {
    if (length > maxBytes) return
    done(chunks !== null ? Buffer.concat(chunks, length) : (first ?? Buffer.alloc(0)))
  })
  request.on('error', () => undefined)
}

/** The rest of the body is not waited for. */
const refuseBody = (request: IncomingMessage, response: ServerResponse, headers: Headers): void => {
  respond(response, 413, 'body too large\n', [...TEXT_TYPE, 'Connection', 'close', ...headers])
  response.once('finish', () => request.destroy())
}

/** How long a client may take to send the body of a request that anybody may send. */
export const BODY_TIMEOUT_MS = 10_000

/** Answers 408 and closes the connection where the body is not complete in time. */
export const limitBodyTime = (
  request: IncomingMessage,
  response: ServerResponse,
  withinMs: number,
  headers: Headers = []
): void => {
  const timer = setTimeout(() => {
    if (response.headersSent) return
    respond(response, 408, 'body too slow\n', [...TEXT_TYPE, 'Connection', 'close', ...headers])
    response.once('finish', () => request.destroy())
  }, withinMs)
  request.once('end', () => clearTimeout(timer))
  request.once('close', () => clearTimeout(timer))
}

/** For a page whose origin has been allowed; a program that sends no origin needs none of it. */
export const corsHeaders = ({ headers }: IncomingMessage): Headers => {
  const { origin } = headers
  if (origin === undefined) return []
  const asked = headers['access-control-request-headers']
  return [
    'Access-Control-Allow-Origin',
    origin,
    'Access-Control-Allow-Credentials',
    'true',
    'Vary',
    'Origin',
    ...(asked === undefined ? [] : ['Access-Control-Allow-Headers', asked])
  ]
}

export const PREFLIGHT: Headers = ['Access-Control-Allow-Methods', 'GET, POST', 'Access-Control-Max-Age', '300']

/** A body of several texts, one after the other. Joining them would copy all of them at once. */
export class TextParts {
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
export const respondLong = (
  response: ServerResponse,
  status: number,
  body: string | TextParts,
  headers: Headers
): MaybePromise<void> => {
  const texts = typeof body === 'string' ? [body] : body.texts
  let length = 0
  for (const text of texts) length += text.length
  if (length > SHORT_LENGTH) return answerInSlices(response, status, texts, headers)
  respond(response, status, texts.join(''), headers)
}

const answerInSlices = async (
  response: ServerResponse,
  status: number,
  texts: readonly string[],
  headers: Headers
): Promise<void> => {
  const slice = new TimeSlice()
  const encoded: Buffer[] = []
  let bytes = 0
  for (const part of partsOf(texts)) {
    const buffer = Buffer.from(part)
    encoded.push(buffer)
    bytes += buffer.length
    if (slice.isOver) await slice.next()
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

/** Unexpected errors of requests are logged and counted here. */
export interface FailureDependencies {
  readonly log: Log
  readonly metrics: { unexpectedError(source: 'http'): void }
}

export const reportFailure = ({ log, metrics }: FailureDependencies, error: unknown): void => {
  metrics.unexpectedError('http')
  log.error({ err: error, source: 'http' }, 'request failed')
}

/** An unexpected error fails one request: it is answered with 500, or broken off where the answer has begun. */
export const failRequest = (parts: FailureDependencies, response: ServerResponse, error: unknown): void => {
  reportFailure(parts, error)
  if (response.headersSent) response.destroy()
  else respond(response, 500, '', ['Connection', 'close'])
}

/** Runs what handles a request, and fails the request where that fails. Never rejects. */
export const handleErrors = async (
  parts: FailureDependencies,
  response: ServerResponse,
  work: () => Promise<void>
): Promise<void> => {
  try {
    await work()
  } catch (error) {
    failRequest(parts, response, error)
  }
}
