import type { ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Dispatcher } from 'undici'
import { onceClosed } from '../response-close.js'
import { type Backend, backendRefusal, mayRepeat } from './backend.js'
import {
  backendRequestHeaders,
  browserResponseHeaders,
  decodedHeaders,
  headerValue,
  type RequestHeaders
} from './headers.js'

export type ForwardedBody = string | Readable | null

export type Forward = (request: FastifyRequest, reply: FastifyReply, body: ForwardedBody) => void

/**
 * Sends a request on to the backend and its answer back. It talks to undici at its lowest level and writes the answer to
 * the socket itself: a proxy library and the streams in between would cost more than all the checks together.
 */
export const forwarder =
  (backend: Backend, publicHost: string | null, watch: BackendWatch): Forward =>
  (request, reply, body) => {
    const headers = backendRequestHeaders(request, publicHost)
    // That of the body as it came; this one was written anew.
    if (typeof body === 'string') headers['content-length'] = undefined
    new Exchange(backend, watch, request, reply, headers, body).start()
    // Nothing is returned: a reply would make the framework wait for its end, at the price of a dozen listeners.
  }

/** Told how the backend does. */
export interface BackendWatch {
  answered(request: FastifyRequest, seconds: number): void
  failed(error: unknown): void
}

type Controller = Dispatcher.DispatchController

/** One request and its answer. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #backend: Backend
  readonly #watch: BackendWatch
  readonly #startedAt = performance.now()
  readonly #reply: FastifyReply
  readonly #response: ServerResponse
  readonly #options: Dispatcher.DispatchOptions
  #controller: Controller | null = null
  #attempt = 0
  /** Whether the backend has begun to answer. */
  #begun = false
  /** What the backend said before the body, until it is sent on; and what the hooks have to say. */
  #status = 0
  #headers: readonly string[] = NO_HEADERS
  #ownHeaders: Readonly<Record<string, unknown>> = NO_OWN_HEADERS
  /** How long the body is, where it is short and says so. */
  #smallLength = -1
  /** Whether the answer is out, or nobody waits for it any more. */
  #over = false

  constructor(
    backend: Backend,
    watch: BackendWatch,
    request: FastifyRequest,
    reply: FastifyReply,
    headers: RequestHeaders,
    body: ForwardedBody
  ) {
    this.#backend = backend
    this.#watch = watch
    this.#reply = reply
    this.#response = reply.raw
    this.#options = {
      method: request.method as Dispatcher.HttpMethod,
      // The very text that was checked.
      path: `${backend.pathPrefix}${request.raw.url}`,
      headers,
      body
    }
  }

  start(): void {
    onceClosed(this.#response, () => {
      this.#over = true
      // A browser that has gone away needs no answer: the backend must not go on working for it.
      if (!this.#response.writableFinished) this.#controller?.abort(new Error('the browser went away'))
    })
    this.#backend.pool.dispatch(this.#options, this)
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller
    if (this.#over) controller.abort(new Error('the browser went away'))
  }

  onResponseStarted(): void {
    this.#begun = true
  }

  // What is thrown here, such as for a header that HTTP does not allow, comes back through `onResponseError`.
  onResponseStart(controller: Controller, status: number): void {
    // An informational answer comes before the real one.
    if (status < 200) return
    if (status > MAX_STATUS) throw new Error(`no answer can have the status ${status}`)
    this.#watch.answered(this.#reply.request, (performance.now() - this.#startedAt) / 1000)
    const { rawHeaders } = controller
    this.#status = status
    this.#ownHeaders = this.#reply.getHeaders()
    this.#headers = browserResponseHeaders(
      decodedHeaders(rawHeaders as Buffer[]),
      this.#backend.address,
      this.#ownHeaders
    )
    // Whole without a body, though they may speak of its length.
    if (BODILESS.has(status)) this.#end()
    else this.#smallLength = smallLength(this.#headers)
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    if (this.#response.writableEnded) return
    // Not before there is something to say: until then the backend may fail, and that can still be told.
    if (!this.#response.headersSent) this.#writeHead(this.#status, this.#headers)
    if (chunk.length === this.#smallLength) {
      // The whole answer in one piece: as Latin-1 text, which keeps every byte, it leaves in one write with its head.
      this.#response.end(chunk.toString('latin1'), 'latin1')
      return
    }
    if (this.#response.write(chunk)) return
    controller.pause()
    this.#response.once('drain', () => controller.resume())
  }

  onResponseEnd(): void {
    if (!this.#response.writableEnded) this.#end()
  }

  onResponseError(_controller: Controller, error: Error): void {
    if (this.#over || this.#response.writableEnded) return
    this.#watch.failed(error)
    if (this.#response.headersSent) this.#breakOff(error)
    else if (this.#mayRepeat(error)) {
      this.#attempt += 1
      this.#backend.pool.dispatch(this.#options, this)
    } else this.#refuse(error)
  }

  #mayRepeat(error: Error): boolean {
    return this.#attempt === 0 && !this.#begun && mayRepeat(this.#options.method, error)
  }

  #end(): void {
    if (!this.#response.headersSent) {
      if (isNoContent(this.#status, this.#options.method)) this.#writeHead(204, withoutContent(this.#headers))
      else this.#writeHead(this.#status, this.#headers)
    }
    this.#response.end()
  }

  #refuse(error: Error): void {
    if (this.#leavesRest()) this.#reply.header('connection', 'close')
    this.#reply.send(backendRefusal(error))
  }

  /** Half an answer must look like one, not like a short success. */
  #breakOff(error: Error): void {
    this.#reply.log.error({ requestId: this.#reply.request.id, err: error }, 'answer broken off')
    // Where the end of the connection is the end of the answer, it takes more than that.
    if (this.#reply.request.raw.httpVersionMinor === 0) this.#response.socket?.resetAndDestroy()
    else this.#response.destroy()
  }

  #writeHead(status: number, incoming: readonly string[]): void {
    const head: string[] = []
    for (const name in this.#ownHeaders) {
      const value = this.#ownHeaders[name]
      if (typeof value === 'string') head.push(name, value)
      else for (const one of [value].flat()) head.push(name, String(one))
    }
    if (this.#leavesRest()) head.push('connection', 'close')
    this.#response.writeHead(status, head.concat(incoming))
    this.#reply.hijack()
  }

  /** Whether the answer does not wait for the end of an upload: the rest of it would be taken for the next request. */
  #leavesRest(): boolean {
    return !this.#reply.request.raw.complete
  }
}

const NO_HEADERS: readonly string[] = []
const NO_OWN_HEADERS: Readonly<Record<string, unknown>> = {}

// RFC 9110: what is above says nothing that anybody could understand.
const MAX_STATUS = 599

const BODILESS: ReadonlySet<number> = new Set([204, 205, 304])

const SMALL_BYTES = 16 * 1024

const smallLength = (headers: readonly string[]): number => {
  const length = Number(headerValue(headers, 'content-length') ?? -1)
  return length <= SMALL_BYTES ? length : -1
}

const MUTATIONS: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])

/** For an answer without a body: whether that is all it says. A 201 still says that something was created. */
const isNoContent = (status: number, method: string): boolean =>
  status === 204 || status === 205 || (status === 200 && MUTATIONS.has(method))

const CONTENT_HEADERS: ReadonlySet<string> = new Set(['content-length', 'content-type', 'content-encoding'])

const withoutContent = (headers: readonly string[]): string[] =>
  headers.filter((_part, index) => !CONTENT_HEADERS.has(headers[index - (index % 2)] as string))
