import { createRequire } from 'node:module'
import type { Dispatcher, Pool } from 'undici'
import { errorCode } from '../../shared/error-code.js'
import type { ProxyOptions } from '../config/proxy-options.js'
import type { PendingCall } from '../core/event-proxies.js'

/** Why there is no response. `aborted`: the caller no longer needs one. */
export type RequestFailure = 'queue-full' | 'timeout' | 'aborted' | 'too-large' | 'network' | 'invalid-request'

export interface FailedRequest {
  readonly failure: RequestFailure
  /** Code of the error, such as `ECONNREFUSED`; '' for none. */
  readonly cause: string
}

export interface EndpointResponse {
  readonly status: number
  /** Read completely if the status is 200, else empty. */
  readonly body: Buffer
}

export interface EndpointRequest {
  readonly body: string
  /** Names and values in turn. */
  readonly headers: string[]
  /** Contains the call until it ends; null if nothing aborts it. */
  readonly calls: Set<PendingCall> | null
  /** Counts the request while it is under way. */
  readonly inFlight: { value: number }
}

export type EndpointOptions = Pick<
  ProxyOptions,
  'origin' | 'path' | 'timeoutMs' | 'tls' | 'maxInFlight' | 'maxQueue' | 'maxResponseBytes'
>

// Shorter than the keep-alive timeout of common servers, so that the relay closes idle connections first. A request that was
// written to a connection that the backend is closing fails: it is never repeated, because the backend may have processed it.
const KEEP_ALIVE_MS = 4_000

const MAX_HEADER_BYTES = 64 * 1024

/** Loaded with the first endpoint, because it takes a tenth of the start of a relay, and most relays have no endpoints. */
const loadUndici = (): typeof import('undici') => createRequire(import.meta.url)('undici')

/**
 * Sends requests to one backend, with a limited number under way and a limited queue in order of arrival: the queue of undici is
 * unbounded and has no deadline. Each endpoint has its own connections, so that a slow one delays only its own callers.
 */
export class ProxyEndpoint {
  readonly options: EndpointOptions
  readonly #pool: Pool
  readonly #queue = new Set<Call>()
  #inFlight = 0
  #isScheduled = false
  #isClosing = false

  constructor(options: EndpointOptions) {
    this.options = options
    const { origin, timeoutMs, tls, maxInFlight } = options
    const { buildConnector, Pool } = loadUndici()
    this.#pool = new Pool(origin, {
      connections: maxInFlight,
      // One request per connection: a slow response must not delay others.
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      // A call has its own deadline.
      headersTimeout: 0,
      bodyTimeout: 0,
      maxHeaderSize: MAX_HEADER_BYTES,
      // Explicit, so that neither NODE_TLS_REJECT_UNAUTHORIZED nor other defaults of undici apply.
      connect: buildConnector({
        timeout: timeoutMs,
        allowH2: false,
        rejectUnauthorized: tls?.isVerified ?? true,
        ...(tls?.ca && { ca: tls.ca }),
        ...(tls?.cert && { cert: tls.cert }),
        ...(tls?.key && { key: tls.key }),
        ...(tls?.serverName && { servername: tls.serverName })
      })
    })
  }

  /** Sends one request, never repeated and without following redirects. Never rejects. */
  post(request: EndpointRequest): Promise<EndpointResponse | FailedRequest> {
    return new Promise((resolve) => {
      const { maxInFlight, maxQueue } = this.options
      if (this.#inFlight + this.#queue.size >= maxInFlight + maxQueue) resolve({ failure: 'queue-full', cause: '' })
      else {
        this.#queue.add(new Call(this, request, resolve))
        this.#schedule()
      }
    })
  }

  get load(): { readonly inFlight: number; readonly queued: number } {
    return { inFlight: this.#inFlight, queued: this.#queue.size }
  }

  /** Lets the calls under way and in the queue end, each within its time limit, and closes the connections then. */
  close(): void {
    this.#isClosing = true
    this.#closeIfIdle()
  }

  /** Removes a call that has not been sent yet. */
  removeFromQueue(call: Call): boolean {
    const isRemoved = this.#queue.delete(call)
    if (isRemoved) this.#closeIfIdle()
    return isRemoved
  }

  /** The connection of a call is free again. */
  release(): void {
    this.#inFlight -= 1
    if (this.#queue.size > 0) this.#schedule()
    else this.#closeIfIdle()
  }

  /**
   * Sends at the end of the turn: undici must not be called from its callbacks, and it has noticed by then which idle
   * connections the backend has closed.
   */
  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#sendQueued()
      this.#closeIfIdle()
    })
  }

  #sendQueued(): void {
    for (const call of this.#queue) {
      if (this.#inFlight >= this.options.maxInFlight) return
      this.#queue.delete(call)
      this.#inFlight += 1
      const { body, headers } = call.request
      call.isSent = true
      call.request.inFlight.value += 1
      this.#pool.dispatch({ path: this.options.path, method: 'POST', headers, body }, call)
    }
  }

  #closeIfIdle(): void {
    if (this.#isClosing && this.#inFlight === 0 && this.#queue.size === 0 && !this.#isScheduled)
      void this.#pool.close().catch(() => undefined)
  }
}

const OK = 200
const FIRST_FINAL_STATUS = 200
const NO_BODY = Buffer.alloc(0)

/** One request. Its result is known before undici has finished with it: after a timeout, or with a status other than 200. */
class Call implements Dispatcher.DispatchHandler, PendingCall {
  readonly request: EndpointRequest
  isSent = false
  readonly #endpoint: ProxyEndpoint
  readonly #resolve: (result: EndpointResponse | FailedRequest) => void
  readonly #deadline: NodeJS.Timeout
  #isSettled = false
  #isReleased = false
  #controller: Dispatcher.DispatchController | null = null
  #status = 0
  #chunks: Buffer[] = []
  #bytes = 0

  constructor(
    endpoint: ProxyEndpoint,
    request: EndpointRequest,
    resolve: (result: EndpointResponse | FailedRequest) => void
  ) {
    this.#endpoint = endpoint
    this.request = request
    this.#resolve = resolve
    this.#deadline = setTimeout(() => this.#cancel('timeout'), endpoint.options.timeoutMs)
    request.calls?.add(this)
  }

  abort(): void {
    this.#cancel('aborted')
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    // The deadline passed while the connection was being established: nothing is sent.
    if (this.#isSettled) controller.abort(new Error('not needed'))
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number): void {
    // The final response follows an informational one.
    if (status < FIRST_FINAL_STATUS) return
    this.#status = status
    // The body is read only so that the connection can be used again.
    if (status !== OK) this.#settle({ status, body: NO_BODY })
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length
    if (this.#bytes > this.#endpoint.options.maxResponseBytes) this.#cancel('too-large')
    else if (this.#status === OK) this.#chunks.push(chunk)
  }

  onResponseEnd(): void {
    const [first = NO_BODY] = this.#chunks
    this.#settle({ status: this.#status, body: this.#chunks.length > 1 ? Buffer.concat(this.#chunks) : first })
    this.#release()
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const cause = errorCode(error)
    // Header values that undici rejects are an error of the request.
    this.#settle({ failure: cause === 'UND_ERR_INVALID_ARG' ? 'invalid-request' : failureOf(cause), cause })
    this.#release()
  }

  /** Ends the call without a response, and the HTTP request if it was sent. */
  #cancel(failure: RequestFailure): void {
    this.#settle({ failure, cause: '' })
    if (this.isSent) this.#controller?.abort(new Error(failure))
    else if (this.#endpoint.removeFromQueue(this)) this.#clear()
  }

  #settle(result: EndpointResponse | FailedRequest): void {
    if (this.#isSettled) return
    this.#isSettled = true
    this.#chunks = []
    this.#resolve(result)
  }

  /** Called once, when undici has finished with the request. */
  #release(): void {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#clear()
    this.request.inFlight.value -= 1
    this.#endpoint.release()
  }

  #clear(): void {
    clearTimeout(this.#deadline)
    this.request.calls?.delete(this)
  }
}

const failureOf = (cause: string): RequestFailure => (cause === 'UND_ERR_CONNECT_TIMEOUT' ? 'timeout' : 'network')
