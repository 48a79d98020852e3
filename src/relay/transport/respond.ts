import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Log } from '../../shared/log.js'
import { monotonicMs } from '../../shared/monotonic.js'
import { isHighSurrogate } from '../../shared/surrogates.js'
import type { MaybePromise } from '../core/maybe-promise.js'
import { TimeSlice } from '../core/time-slice.js'

export type Headers = readonly string[]

/** `path` is the path of the request without its query. */
export type HttpHandler = (request: IncomingMessage, response: ServerResponse, path: string) => void

/** Sends a complete response. Headers are a flat list of names and values, as `writeHead` accepts. */
export const respond = (response: ServerResponse, status: number, body = '', headers: Headers = []): void => {
  response.writeHead(status, ['Content-Length', String(Buffer.byteLength(body)), ...headers])
  response.end(body)
}

export const JSON_TYPE: Headers = ['Content-Type', 'application/json']
export const TEXT_TYPE: Headers = ['Content-Type', 'text/plain; charset=utf-8']

/** Disables caching and proxy buffering. The connection ends with the stream. */
export const STREAM_HEADERS: Headers = [
  'Cache-Control',
  'no-store, no-transform',
  'X-Accel-Buffering',
  'no',
  'Connection',
  'close'
]

/**
 * Calls back with the complete body, or responds with 413 if it is too long. Never calls back for an aborted request. Not
 * `readUpTo`, which destroys the connection of a body that is too long, so that the client would not receive the 413.
 */
export const readBody = (
  request: IncomingMessage,
  response: ServerResponse,
  maxBytes: number,
  callback: (body: Buffer) => void,
  headers: Headers = []
): void => {
  const contentLength = Number(request.headers['content-length'] ?? 0)
  if (contentLength > maxBytes) {
    rejectBody(request, response, headers)
    return
  }
  let first: Buffer | null = null
  let chunks: Buffer[] | null = null
  let length = 0
  request.on('data', (chunk: Buffer) => {
    length += chunk.length
    if (length > maxBytes) {
      if (!response.headersSent) rejectBody(request, response, headers)
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
    callback(chunks !== null ? Buffer.concat(chunks, length) : (first ?? Buffer.alloc(0)))
  })
  request.on('error', () => undefined)
}

/** Closes the connection without waiting for the rest of the body. */
const rejectBody = (request: IncomingMessage, response: ServerResponse, headers: Headers): void => {
  respond(response, 413, 'body too large\n', [...TEXT_TYPE, 'Connection', 'close', ...headers])
  response.once('finish', () => request.destroy())
}

/** Time to receive the body of a request without authentication. */
export const BODY_TIMEOUT_MS = 10_000

/** Responds with 408 and closes the connection if the body is not complete in time. */
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

/** The CORS headers for an allowed origin; none for a request without an origin. */
export const corsHeaders = ({ headers }: IncomingMessage): Headers => {
  const { origin } = headers
  if (origin === undefined) return []
  const requestedHeaders = headers['access-control-request-headers']
  return [
    'Access-Control-Allow-Origin',
    origin,
    'Access-Control-Allow-Credentials',
    'true',
    'Vary',
    'Origin',
    ...(requestedHeaders === undefined ? [] : ['Access-Control-Allow-Headers', requestedHeaders])
  ]
}

export const PREFLIGHT: Headers = ['Access-Control-Allow-Methods', 'GET, POST', 'Access-Control-Max-Age', '300']

/** A body made of several texts, which are not joined because that would copy all of them at once. */
export class TextParts {
  readonly texts: readonly string[]

  constructor(texts: readonly string[]) {
    this.texts = texts
  }

  toString(): string {
    return this.texts.join('')
  }
}

/** Longer bodies are encoded in time slices. */
const SHORT_LENGTH = 256 * 1024
const PART_LENGTH = 64 * 1024

/** Sends a response that may be long. Long bodies are encoded in time slices, so that other clients are served in between. */
export const respondLong = (
  response: ServerResponse,
  status: number,
  body: string | TextParts,
  headers: Headers
): MaybePromise<void> => {
  const texts = typeof body === 'string' ? [body] : body.texts
  let length = 0
  for (const text of texts) length += text.length
  if (length > SHORT_LENGTH) return respondInSlices(response, status, texts, headers)
  respond(response, status, texts.join(''), headers)
}

const respondInSlices = async (
  response: ServerResponse,
  status: number,
  texts: readonly string[],
  headers: Headers
): Promise<void> => {
  const slice = new TimeSlice(monotonicMs)
  const encoded: Buffer[] = []
  let bytes = 0
  for (const part of chunksOf(texts)) {
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

/** Splits and joins the texts to parts of about `PART_LENGTH`. */
const chunksOf = function* (texts: readonly string[]): Generator<string> {
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
    } else yield* split(text)
  }
  yield short.join('')
}

const split = function* (text: string): Generator<string> {
  for (let start = 0; start < text.length; ) {
    let end = start + PART_LENGTH
    // Does not split a surrogate pair.
    if (isHighSurrogate(text.charCodeAt(end - 1))) end += 1
    yield text.slice(start, end)
    start = end
  }
}

/** Logs and counts unexpected errors of HTTP requests. An error fails only its own request. */
export class RequestErrors {
  readonly #log: Log
  readonly #metrics: { unexpectedError(source: 'http'): void }

  constructor(log: Log, metrics: { unexpectedError(source: 'http'): void }) {
    this.#log = log
    this.#metrics = metrics
  }

  report(error: unknown): void {
    this.#metrics.unexpectedError('http')
    this.#log.error({ err: error, source: 'http' }, 'request failed')
  }

  /** Responds with 500, or aborts a response that has been started. */
  fail(response: ServerResponse, error: unknown): void {
    this.report(error)
    if (response.headersSent) response.destroy()
    else respond(response, 500, '', ['Connection', 'close'])
  }

  /** Runs an asynchronous handler and fails the request if it rejects. Never rejects itself. */
  async handle(response: ServerResponse, handler: () => Promise<void>): Promise<void> {
    try {
      await handler()
    } catch (error) {
      this.fail(response, error)
    }
  }
}
