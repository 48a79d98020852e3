import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { type Dispatcher, errors } from 'undici'
import type { Span } from '../../shared/tracing.js'
import { READING_METHODS, WRITE_METHODS } from '../access.js'
import { GatewayError } from '../errors.js'
import { routeLabel } from '../http/client-request.js'
import type { HeaderTable } from '../http/header-table.js'
import { onceClosed } from '../http/response-close.js'
import { hasCredentials, isAnonymous } from '../session/credentials.js'
import { type Backend, type BackendMetrics, isRetryable, toBackendError } from './backend-pool.js'
import { endBackendSpan, startBackendSpan } from './backend-span.js'
import type { CapacityRequest } from './capacity.js'
import { backendRequestHeaders, type ForwardedUser, type OutgoingBody } from './request-headers.js'
import { browserResponseHeaders, headerValue, rawHeadersOf, withoutNames } from './response-headers.js'

/** RFC 9110 defines no status above it. */
export const MAX_STATUS = 599

const BODILESS_STATUSES: ReadonlySet<number> = new Set([204, 205, 304])

/** Whether a response without a body is sent as 204. A 201 stays: its status carries information. */
export const isNoContent = (status: number, method: string): boolean =>
  status === 204 || status === 205 || (status === 200 && WRITE_METHODS.has(method))

const CONTENT_HEADERS: ReadonlySet<string> = new Set(['content-length', 'content-type', 'content-encoding'])

export type ForwardedBody = string | Readable | null

/** Does not return a promise or the reply: Fastify must not wait, because the response is written to `reply.raw`. */
export type Forward = (request: FastifyRequest, reply: FastifyReply, body: ForwardedBody) => void

export interface ForwarderOptions {
  readonly backend: Backend
  /** `X-Forwarded-Host` for the backend; null forwards the host of the request. */
  readonly publicHost: string | null
  readonly headerTable: HeaderTable
  readonly metrics: BackendMetrics
  readonly log: Pick<Logger, 'error'>
  /** By default the backend receives the app token. */
  readonly user?: ForwardedUser
  /** Further headers of every request to the backend: alternating names and values. */
  readonly extraHeaders?: readonly string[]
}

/** Forwards requests to the backend and writes its responses to the client. */
export const createForwarder = (options: ForwarderOptions): Forward => {
  const { publicHost, headerTable, user, extraHeaders, ...context } = options
  const requestContext: BackendRequestContext = { ...context, fixedHeaders: Object.entries(headerTable).flat() }
  return (request, reply, body) => {
    const span = startBackendSpan(request, request.method, context.backend)
    const headers = backendRequestHeaders(request, publicHost, outgoingBody(request.method, body), span, user)
    if (extraHeaders !== undefined) headers.push(...extraHeaders)
    const options: Dispatcher.DispatchOptions = {
      method: request.method,
      // The same text that the rules have checked.
      path: context.backend.pathOf(request.raw.url ?? ''),
      headers,
      body,
      // `BackendRequest` has its own idle timer, because the limit depends on the content type of the response.
      bodyTimeout: 0
    }
    new BackendRequest(requestContext, reply, options, span).start()
  }
}

const outgoingBody = (method: string, body: ForwardedBody): OutgoingBody => {
  if (typeof body === 'string') return 'json'
  // Reading methods are forwarded without a body.
  return READING_METHODS.has(method) ? 'none' : 'as sent'
}

interface BackendRequestContext {
  readonly backend: Backend
  readonly metrics: BackendMetrics
  readonly log: Pick<Logger, 'error'>
  /** Headers of every response: alternating names and values. */
  readonly fixedHeaders: readonly string[]
}

/** One request to the backend, from waiting for capacity to the last byte of its response. */
class BackendRequest implements Dispatcher.DispatchHandler, CapacityRequest {
  readonly streams: boolean
  readonly anonymous: boolean
  readonly #context: BackendRequestContext
  readonly #reply: FastifyReply
  readonly #response: ServerResponse
  readonly #options: Dispatcher.DispatchOptions
  #span: Span | null
  #state: 'queued' | 'running' | 'done' = 'queued'
  #startedAt = 0
  #controller: Dispatcher.DispatchController | null = null
  #isRetry = false
  /** Whether the first byte of a response has arrived. */
  #hasResponseStarted = false
  /** Expires when the backend does not read the request body. */
  #uploadTimer: NodeJS.Timeout | null = null
  /** Expires when the backend stops sending the response body. */
  #idleTimer: NodeJS.Timeout | null = null
  #status = 0
  /** Headers of the backend, filtered for the browser, and those that hooks have set on the reply. */
  #headers: readonly string[] = []
  #replyHeaders: Readonly<Record<string, unknown>> = {}
  /** Whether the complete response of the backend was written. */
  #isEnded = false
  /** Whether the response was sent, or the client has disconnected. */
  #isClosed = false

  constructor(
    context: BackendRequestContext,
    reply: FastifyReply,
    options: Dispatcher.DispatchOptions,
    span: Span | null
  ) {
    this.#context = context
    this.#span = span
    this.#reply = reply
    this.#response = reply.raw
    this.#options = options
    this.streams = options.body instanceof Readable
    this.anonymous = isAnonymous(reply.request)
  }

  start(): void {
    this.#startedAt = performance.now()
    this.#context.backend.capacity.acquire(this)
    onceClosed(this.#response, () => this.#onClosed())
  }

  onAcquired(waitedMs: number): void {
    this.#state = 'running'
    // The time in the queue counts towards the timeout.
    if (waitedMs > 0) this.#options.headersTimeout = Math.max(1, this.#context.backend.timeoutMs - waitedMs)
    this.#context.backend.pool.dispatch(this.#options, this)
  }

  onRejected(error: GatewayError): void {
    this.#state = 'done'
    this.#endSpan(error)
    if (this.#isUploadUnfinished()) this.#reply.header('connection', 'close')
    this.#reply.send(error)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#isClosed) controller.abort(clientDisconnected())
    else if (this.#options.body instanceof Readable) this.#watchUpload(this.#options.body)
  }

  onResponseStarted(): void {
    this.#hasResponseStarted = true
  }

  /** Undici passes errors thrown here to `onResponseError`, for example for an invalid header. */
  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    // The final response follows an informational one.
    if (status < 200) return
    if (status > MAX_STATUS) throw new Error(`invalid response status ${status}`)
    const { backend, metrics } = this.#context
    metrics.backendResponded(routeLabel(this.#reply.request), (performance.now() - this.#startedAt) / 1000)
    this.#status = status
    this.#replyHeaders = this.#reply.getHeaders()
    const isPersonal = hasCredentials(this.#reply.request)
    this.#headers = browserResponseHeaders(rawHeadersOf(controller.rawHeaders), backend, this.#replyHeaders, isPersonal)
    if (BODILESS_STATUSES.has(status)) {
      this.#end()
      return
    }
    const isStream = isEventStream(this.#headers)
    this.#startIdleTimer(controller, isStream ? backend.streamIdleMs : backend.timeoutMs)
    // The first event may arrive much later, and the page waits for the headers.
    if (isStream) {
      // Otherwise nginx in front of the gateway collects events, unless it is configured.
      const isInstructed = headerValue(this.#headers, 'x-accel-buffering') !== undefined
      this.#writeHead(status, isInstructed ? this.#headers : [...this.#headers, 'x-accel-buffering', 'no'])
      this.#response.flushHeaders()
    }
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isEnded) return
    this.#idleTimer?.refresh()
    // Not earlier: if the backend fails before the first byte of the body, the client still receives an error response.
    if (!this.#response.headersSent) this.#writeHead(this.#status, this.#headers)
    if (this.#response.write(chunk)) return
    // The rest of a small response is buffered, so that a slow client does not hold the connection to the backend.
    if (this.#response.writableLength > this.#context.backend.responseBufferBytes) this.#pause(controller)
  }

  onResponseEnd(): void {
    this.#endSpan()
    this.#release()
    if (!this.#isEnded) this.#end()
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#isClosed || this.#isEnded || this.#response.writableEnded) {
      this.#endSpan(error)
      this.#release()
      return
    }
    if (this.#canRetry(error)) {
      this.#isRetry = true
      this.#span?.setAttributes({ 'http.request.resend_count': 1 })
      // Not before the pool has noticed other connections that the backend closed at the same time.
      setImmediate(() => this.#context.backend.pool.dispatch(this.#options, this))
      return
    }
    this.#context.metrics.backendFailed(error)
    this.#endSpan(error)
    this.#release()
    if (this.#response.headersSent) this.#truncate(error)
    else this.onRejected(toBackendError(error))
  }

  #canRetry(error: Error): boolean {
    const hasResponse = this.#hasResponseStarted || this.#response.headersSent
    return !this.#isRetry && !hasResponse && isRetryable(this.#options.method, error)
  }

  /** A slow client is disconnected by `slow-clients.ts`. Here bytes are waiting that the backend does not read. */
  #watchUpload(body: Readable): void {
    this.#uploadTimer = setTimeout(() => {
      if (this.#reply.request.raw.readableLength > 0) this.#controller?.abort(new GatewayError('BACKEND_TIMEOUT'))
      else this.#uploadTimer?.refresh()
    }, this.#context.backend.timeoutMs)
    body.on('data', () => this.#uploadTimer?.refresh())
    body.once('end', () => this.#stopUploadTimer())
  }

  #stopUploadTimer(): void {
    if (this.#uploadTimer !== null) clearTimeout(this.#uploadTimer)
    this.#uploadTimer = null
  }

  #startIdleTimer(controller: Dispatcher.DispatchController, ms: number): void {
    this.#idleTimer = setTimeout(() => {
      if (controller.paused) this.#idleTimer?.refresh()
      else controller.abort(new errors.BodyTimeoutError())
    }, ms)
  }

  /** A client that reads too slowly is disconnected by `slow-clients.ts`. */
  #pause(controller: Dispatcher.DispatchController): void {
    controller.pause()
    this.#response.once('drain', () => {
      this.#idleTimer?.refresh()
      controller.resume()
    })
  }

  #release(): void {
    if (this.#state !== 'running') return
    this.#state = 'done'
    this.#stopUploadTimer()
    if (this.#idleTimer !== null) clearTimeout(this.#idleTimer)
    this.#context.backend.capacity.release(this)
  }

  #endSpan(error?: Error): void {
    endBackendSpan(this.#span, this.#status, error)
    this.#span = null
  }

  #onClosed(): void {
    this.#isClosed = true
    if (this.#state === 'queued') {
      this.#state = 'done'
      this.#endSpan(clientDisconnected())
      this.#context.backend.capacity.cancel(this)
    } else if (this.#state === 'running') {
      // The backend must not go on working for a client that has disconnected.
      this.#controller?.abort(clientDisconnected())
    }
  }

  #end(): void {
    this.#isEnded = true
    if (!this.#response.headersSent) {
      if (isNoContent(this.#status, this.#options.method))
        this.#writeHead(204, withoutNames(this.#headers, CONTENT_HEADERS))
      else this.#writeHead(this.#status, this.#headers)
    }
    this.#response.end()
  }

  /** A truncated response must not look like a complete one. */
  #truncate(error: Error): void {
    this.#context.log.error({ requestId: this.#reply.request.id, err: error }, 'response truncated')
    // An HTTP/1.0 response may end with its connection, so that only a reset shows the error.
    if (this.#reply.request.raw.httpVersionMinor === 0) this.#response.socket?.resetAndDestroy()
    else this.#response.destroy()
  }

  #writeHead(status: number, headers: readonly string[]): void {
    const head = this.#context.fixedHeaders.concat('x-request-id', this.#reply.request.id, headers)
    for (const name in this.#replyHeaders) {
      for (const value of [this.#replyHeaders[name]].flat()) head.push(name, String(value))
    }
    if (this.#isUploadUnfinished()) head.push('connection', 'close')
    this.#response.writeHead(status, head)
    this.#reply.hijack()
  }

  /** Whether the response is sent before the upload is complete. Only a part of the rest is read. */
  #isUploadUnfinished(): boolean {
    const { complete, headers } = this.#reply.request.raw
    return !complete && (headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > 0)
  }
}

const clientDisconnected = (): Error => new Error('the client disconnected')

const EVENT_STREAM = /^text\/event-stream[\t ]*(?:;|$)/i

const isEventStream = (headers: readonly string[]): boolean =>
  EVENT_STREAM.test(headerValue(headers, 'content-type') ?? '')
