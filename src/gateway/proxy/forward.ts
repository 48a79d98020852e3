import type { ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Dispatcher } from 'undici'
import { type Backend, backendRefusal, mayRepeat } from './backend.js'
import { backendRequestHeaders, browserResponseHeaders, decodedHeaders, type RequestHeaders } from './headers.js'

export type ForwardedBody = string | Readable | null

export type Forward = (request: FastifyRequest, reply: FastifyReply, body: ForwardedBody) => FastifyReply

/**
 * Sends a request on to the backend and its answer back. It talks to undici at its lowest level and writes the answer to
 * the socket itself: a proxy library and the streams in between would cost more than all the checks together.
 */
export const forwarder =
  (backend: Backend, publicHost: string | null): Forward =>
  (request, reply, body) => {
    new Exchange(backend, request, reply, backendRequestHeaders(request, publicHost), body).start()
    return reply
  }

type Controller = Dispatcher.DispatchController

/** One request and its answer. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #backend: Backend
  readonly #reply: FastifyReply
  readonly #response: ServerResponse
  readonly #options: Dispatcher.DispatchOptions
  #controller: Controller | null = null
  #attempt = 0

  constructor(
    backend: Backend,
    request: FastifyRequest,
    reply: FastifyReply,
    headers: RequestHeaders,
    body: ForwardedBody
  ) {
    this.#backend = backend
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
    // A browser that has gone away needs no answer: the backend must not go on working for it.
    this.#response.once('close', () => {
      if (!this.#response.writableFinished) this.#controller?.abort(new Error('the browser went away'))
    })
    this.#backend.pool.dispatch(this.#options, this)
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller
    if (this.#response.closed) controller.abort(new Error('the browser went away'))
  }

  onResponseStart(controller: Controller, status: number): void {
    // An informational answer comes before the real one.
    if (status < 200) return
    const own = this.#reply.getHeaders()
    const incoming = browserResponseHeaders(
      decodedHeaders(controller.rawHeaders as Buffer[]),
      this.#backend.origin,
      own
    )
    const empty = isEmpty(status, incoming, this.#options.method)
    try {
      this.#response.writeHead(empty ? 204 : status, this.#head(own, empty ? withoutContent(incoming) : incoming))
      this.#reply.hijack()
    } catch (error) {
      // A header that HTTP does not allow: nonsense from the backend, and nothing is written yet.
      controller.abort(error as Error)
    }
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    if (this.#response.write(chunk)) return
    controller.pause()
    this.#response.once('drain', () => controller.resume())
  }

  onResponseEnd(): void {
    this.#response.end()
  }

  onResponseError(_controller: Controller, error: Error): void {
    // Half an answer must look like one, not like a short success.
    if (this.#response.headersSent) this.#response.destroy()
    else if (mayRepeat(this.#options.method, error, this.#attempt)) {
      this.#attempt += 1
      this.#backend.pool.dispatch(this.#options, this)
    } else if (!this.#response.closed) this.#reply.send(backendRefusal(error))
  }

  /** Ours, which the hooks left on the reply, then the backend's. */
  #head(own: Readonly<Record<string, unknown>>, incoming: string[]): string[] {
    const head: string[] = []
    for (const name in own) {
      for (const value of [own[name]].flat()) head.push(name, String(value))
    }
    // What is left of an upload that the backend did not wait for would be taken for the next request.
    if (!this.#reply.request.raw.complete) head.push('connection', 'close')
    return head.concat(incoming)
  }
}

const MUTATIONS: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])

/** "No content" in every way a backend says it; a 201 without a body still says that something was created. */
const isEmpty = (status: number, headers: readonly string[], method: string): boolean => {
  if (status === 204 || status === 205) return true
  if (status !== 200 || !MUTATIONS.has(method)) return false
  const length = headers.indexOf('content-length')
  return length !== -1 && headers[length + 1] === '0'
}

const CONTENT_HEADERS: ReadonlySet<string> = new Set(['content-length', 'content-type', 'content-encoding'])

const withoutContent = (headers: readonly string[]): string[] =>
  headers.filter((_part, index) => !CONTENT_HEADERS.has(headers[index - (index % 2)] as string))
