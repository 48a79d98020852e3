import type { ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { type Client, type Dispatcher, errors } from 'undici'
import { MUTATING_METHODS, READING_METHODS } from '../access.js'
import { GatewayError } from '../errors.js'
import type { HeaderTable } from '../plugins/security-headers.js'
import { onceClosed } from '../request-context.js'
import { type Backend, type BackendWatch, mayRepeat, toBackendError, type Waiter } from './backend.js'
import { type BodyAnnouncement, backendRequestHeaders } from './request-headers.js'
import { browserResponseHeaders, headerValue, withoutNames } from './response-headers.js'

// RFC 9110: what is above says nothing that anybody could understand.
export const MAX_STATUS = 599

/** Whole without a body, though they may speak of its length. */
export const BODILESS: ReadonlySet<number> = new Set([204, 205, 304])

/** For an answer without a body: whether that is all it says. A 201 still says that something was created. */
export const isNoContent = (status: number, method: string): boolean =>
  status === 204 || status === 205 || (status === 200 && MUTATING_METHODS.has(method))

/** What speaks of a body. */
export const CONTENT_HEADERS: ReadonlySet<string> = new Set(['content-length', 'content-type', 'content-encoding'])

export interface ExchangeParts {
  readonly backend: Backend
  readonly watch: BackendWatch
  readonly log: Pick<Logger, 'error'>
  /** What every answer carries, as names and values by turns. */
  readonly fixedHead: readonly string[]
}

/**
 * One request and its answer. The methods that begin with `on` are undici's oldest form of a handler: it is the one that
 * its connections call, where a handler of the new form is wrapped, and gets every header parsed into an object: 4 µs.
 */
export class Exchange implements Dispatcher.DispatchHandler, Waiter {
  readonly streams: boolean
  readonly anonymous: boolean
  readonly #parts: ExchangeParts
  readonly #reply: FastifyReply
  readonly #response: ServerResponse
  readonly #options: Dispatcher.DispatchOptions
  #startedAt = 0
  #phase: 'waiting' | 'running' | 'done' = 'waiting'
  #connection: Client | null = null
  #attempt = 0
  #abort: ((reason: Error) => void) | null = null
  #resume: (() => void) | null = null
  /** Until the backend takes the next part of the body. */
  #untaken: NodeJS.Timeout | null = null
  /** Until the backend sends the next part of its response. */
  #silence: NodeJS.Timeout | null = null
  /** Whether the backend may not send because the browser does not read. */
  #paused = false
  /** Whether the backend has begun to answer. */
  #begun = false
  /** What the backend said before the body, until it is sent on; and what the hooks have to say. */
  #status = 0
  #headers: readonly string[] = NO_HEADERS
  #ownHeaders: Readonly<Record<string, unknown>> = NO_OWN_HEADERS
  /** How long the body is, where it is short and says so. */
  #smallLength = -1
  /** Whether all of the answer is written. */
  #whole = false
  /** Whether the answer is out, or nobody waits for it any more. */
  #closed = false

  constructor(parts: ExchangeParts, reply: FastifyReply, options: Dispatcher.DispatchOptions) {
    this.#parts = parts
    this.#reply = reply
    this.#response = reply.raw
    this.#options = options
    this.streams = options.body !== null && typeof options.body === 'object'
    this.anonymous = reply.request.auth === null && reply.request.exchangedToken === null
  }

  start(): void {
    this.#startedAt = performance.now()
    this.#parts.backend.slots.enter(this)
    onceClosed(this.#response, () => this.#close())
  }

  run(connection: Client, waitedMs: number): void {
    this.#phase = 'running'
    this.#connection = connection
    // What was spent waiting is gone.
    if (waitedMs > 0) this.#options.headersTimeout = Math.max(1, this.#parts.backend.timeoutMs - waitedMs)
    if (this.streams) this.#watchBody()
    connection.dispatch(this.#options, this)
  }

  reject(error: GatewayError): void {
    this.#phase = 'done'
    if (this.#leavesRest()) this.#reply.header('connection', 'close')
    this.#reply.send(error)
  }

  onConnect(abort: (reason?: Error) => void): void {
    this.#abort = abort
    if (this.#closed) abort(browserLeft())
  }

  onResponseStarted(): void {
    this.#begun = true
  }

  // What is thrown here, such as for a header that HTTP does not allow, comes back through `onError`.
  onHeaders(status: number, rawHeaders: Buffer[], resume: () => void): boolean {
    // An informational answer comes before the real one.
    if (status < 200) return true
    if (status > MAX_STATUS) throw new Error(`no answer can have the status ${status}`)
    this.#parts.watch.answered(this.#reply.request, (performance.now() - this.#startedAt) / 1000)
    this.#status = status
    this.#resume = resume
    this.#ownHeaders = this.#reply.getHeaders()
    this.#headers = browserResponseHeaders(rawHeaders, this.#parts.backend.address, this.#ownHeaders)
    if (BODILESS.has(status)) {
      this.#end()
      return true
    }
    this.#smallLength = smallLength(this.#headers)
    const isStream = isEventStream(this.#headers)
    this.#watchForSilence(isStream ? this.#parts.backend.streamIdleMs : this.#parts.backend.timeoutMs)
    // A page waits for the head of a stream, which may be silent for long.
    if (isStream) {
      this.#writeHead(status, this.#headers)
      this.#response.flushHeaders()
    }
    return true
  }

  onData(chunk: Buffer): boolean {
    if (this.#whole || this.#response.writableEnded) return true
    this.#silence?.refresh()
    // Not before there is something to say: until then the backend may fail, and that can still be told.
    if (!this.#response.headersSent) this.#writeHead(this.#status, this.#headers)
    if (chunk.length === this.#smallLength) {
      // The whole answer in one piece: as Latin-1 text, which keeps every byte, it leaves in one write with its head.
      // Ended at once, it would leave together with an empty piece behind it, in a dearer kind of write.
      this.#response.write(chunk.toString('latin1'), 'latin1')
      this.#whole = true
      process.nextTick(endResponse, this.#response)
      return true
    }
    if (this.#response.write(chunk)) return true
    // The rest of a small response is kept here, so that a slow reader does not hold the connection to the backend.
    if (this.#response.writableLength <= this.#parts.backend.responseBufferBytes) return true
    this.#waitForReader()
    return false
  }

  onComplete(): void {
    this.#leave()
    if (!this.#whole && !this.#response.writableEnded) this.#end()
  }

  onError(error: Error): void {
    if (this.#closed || this.#whole || this.#response.writableEnded) {
      this.#leave()
      return
    }
    this.#parts.watch.failed(error)
    if (this.#mayRepeat(error)) {
      this.#attempt += 1
      // Not at once: see `BackendSlots.leave`.
      process.nextTick(() => this.#connection?.dispatch(this.#options, this))
      return
    }
    this.#leave()
    if (this.#response.headersSent) this.#breakOff(error)
    else this.reject(toBackendError(error))
  }

  onBodySent(): void {
    this.#untaken?.refresh()
  }

  onRequestSent(): void {
    this.#untaken = stopped(this.#untaken)
  }

  /** Only where bytes are waiting is it the backend that does not take them. Slow senders are ended by `slow-clients.ts`. */
  #watchBody(): void {
    this.#untaken = setTimeout(() => {
      if (this.#reply.request.raw.readableLength > 0) this.#abort?.(new GatewayError('BACKEND_TIMEOUT'))
      else this.#untaken?.refresh()
    }, this.#parts.backend.timeoutMs)
  }

  #watchForSilence(ms: number): void {
    this.#silence = setTimeout(() => {
      if (this.#paused) this.#silence?.refresh()
      else this.#abort?.(new errors.BodyTimeoutError())
    }, ms)
  }

  /** Readers that are too slow are ended by `slow-clients.ts`. */
  #waitForReader(): void {
    this.#paused = true
    this.#response.once('drain', () => {
      this.#paused = false
      this.#silence?.refresh()
      this.#resume?.()
    })
  }

  #mayRepeat(error: Error): boolean {
    return this.#attempt === 0 && !this.#begun && !this.#response.headersSent && mayRepeat(this.#options.method, error)
  }

  #leave(): void {
    if (this.#phase !== 'running' || this.#connection === null) return
    this.#phase = 'done'
    this.#untaken = stopped(this.#untaken)
    this.#silence = stopped(this.#silence)
    this.#parts.backend.slots.leave(this, this.#connection)
  }

  #close(): void {
    this.#closed = true
    if (this.#phase === 'waiting') {
      this.#phase = 'done'
      this.#parts.backend.slots.giveUp(this)
    }
    // A browser that has gone away needs no answer: the backend must not go on working for it.
    else if (this.#phase === 'running') this.#abort?.(browserLeft())
  }

  #end(): void {
    if (!this.#response.headersSent) {
      if (isNoContent(this.#status, this.#options.method))
        this.#writeHead(204, withoutNames(this.#headers, CONTENT_HEADERS))
      else this.#writeHead(this.#status, this.#headers)
    }
    this.#response.end()
  }

  /** Half an answer must look like one, not like a short success. */
  #breakOff(error: Error): void {
    this.#parts.log.error({ requestId: this.#reply.request.id, err: error }, 'answer broken off')
    // Where the end of the connection is the end of the answer, it takes more than that.
    if (this.#reply.request.raw.httpVersionMinor === 0) this.#response.socket?.resetAndDestroy()
    else this.#response.destroy()
  }

  #writeHead(status: number, incoming: readonly string[]): void {
    const head = this.#parts.fixedHead.concat('x-request-id', this.#reply.request.id, incoming)
    for (const name in this.#ownHeaders) {
      const value = this.#ownHeaders[name]
      if (typeof value === 'string') head.push(name, value)
      else for (const one of [value].flat()) head.push(name, String(one))
    }
    if (this.#leavesRest()) head.push('connection', 'close')
    this.#response.writeHead(status, head)
    this.#reply.hijack()
  }

  /** Whether the answer does not wait for the end of an upload: nobody reads the rest of it, and what comes after that. */
  #leavesRest(): boolean {
    const { complete, headers } = this.#reply.request.raw
    return !complete && (headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > 0)
  }
}

const stopped = (timer: NodeJS.Timeout | null): null => {
  if (timer !== null) clearTimeout(timer)
  return null
}

const endResponse = (response: ServerResponse): void => {
  response.end()
}

const browserLeft = (): Error => new Error('the browser went away')

const NO_HEADERS: readonly string[] = []
const NO_OWN_HEADERS: Readonly<Record<string, unknown>> = {}

const EVENT_STREAM = /^text\/event-stream[\t ]*(?:;|$)/i

const isEventStream = (headers: readonly string[]): boolean =>
  EVENT_STREAM.test(headerValue(headers, 'content-type') ?? '')

const SMALL_BYTES = 16 * 1024

const smallLength = (headers: readonly string[]): number => {
  const length = Number(headerValue(headers, 'content-length') ?? -1)
  return length <= SMALL_BYTES ? length : -1
}

export type ForwardedBody = string | Readable | null

export type Forward = (request: FastifyRequest, reply: FastifyReply, body: ForwardedBody) => void

export interface ForwarderParts extends Omit<ExchangeParts, 'fixedHead'> {
  /** What the backend is told that the browser asked for; null for what the browser says itself. */
  readonly publicHost: string | null
  readonly headerTable: HeaderTable
}

/**
 * Sends a request on to the backend and its answer back. It talks to undici at its lowest level and writes the answer to
 * the socket itself: a proxy library and the streams in between would cost more than all the checks together.
 */
export const forwarder = ({ backend, publicHost, headerTable, watch, log }: ForwarderParts): Forward => {
  const parts: ExchangeParts = { backend, watch, log, fixedHead: Object.entries(headerTable).flat() }
  return (request, reply, body) => {
    const options: Dispatcher.DispatchOptions = {
      method: request.method as Dispatcher.HttpMethod,
      // The very text that was checked.
      path: `${backend.pathPrefix}${request.raw.url}`,
      headers: backendRequestHeaders(request, publicHost, announcement(request.method, body)),
      body,
      // The exchange watches for silence itself: how long one may last depends on the response.
      bodyTimeout: 0
    }
    new Exchange(parts, reply, options).start()
    // Nothing is returned: a reply would make the framework wait for its end, at the price of a dozen listeners.
  }
}

const announcement = (method: string, body: ForwardedBody): BodyAnnouncement => {
  if (typeof body === 'string') return 'json'
  // A read is forwarded without a body.
  return READING_METHODS.has(method) ? 'none' : 'as sent'
}
