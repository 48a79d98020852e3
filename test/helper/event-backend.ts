import { once } from 'node:events'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type Server,
  type ServerResponse
} from 'node:http'
import { text } from 'node:stream/consumers'
import { portOf } from './address.js'
import type { Teardown } from './child.js'
import { LOOPBACK } from './free-port.js'
import type { Json } from './raw-client.js'

/** A request that asks about an event. */
export interface EventRequest {
  /** The last part of the path: `connect`, `subscribe` and so on, if the endpoint is one of `endpoint()`. */
  readonly event: string
  readonly method: string
  /** The unmodified request target. */
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** All values of repeated headers. */
  readonly headersDistinct: NodeJS.Dict<string[]>
  /** The body as it arrived. */
  readonly text: string
  readonly body: Json
  /** Whether the relay closed the connection before it had the whole response. */
  readonly isAborted: boolean
}

/** A response with any status and bytes. */
export class RawAnswer {
  readonly status: number
  readonly body: string | Buffer
  readonly headers: OutgoingHttpHeaders

  constructor(status: number, body: string | Buffer = '', headers: OutgoingHttpHeaders = {}) {
    this.status = status
    this.body = body
    this.headers = headers
  }
}

/** The backend closes the connection without a response. */
export const RESET = Symbol('reset')
/** Nothing is sent: the backend hangs, or the handler writes to the response itself. */
export const HANG = Symbol('hang')

/** An object is sent as JSON with status 200. */
export type Answer = Json | RawAnswer | typeof RESET | typeof HANG

export type EventHandler = (request: EventRequest, response: ServerResponse) => Answer | Promise<Answer>

/** Requests of one event that wait for their response. */
export interface HeldEvents {
  /** Resolves with the next request that has not been returned yet. */
  next(): Promise<EventRequest>
  /** Responds to the requests that wait, and to later ones. */
  release(answer: Answer): void
}

const ALLOW: EventHandler = () => ({ result: {} })

/** A backend that is asked about events. It records the requests; a test sets what it answers, per event and at any time. */
export class EventBackend {
  readonly requests: EventRequest[] = []
  /** By event. Others are answered with an empty result. */
  readonly handlers = new Map<string, EventHandler>()
  /** Requests that are being processed now, and the maximum so far. */
  concurrency = 0
  maxConcurrency = 0
  readonly #waiters: { readonly event: string; readonly resolve: (request: EventRequest) => void }[] = []
  #server: Server = this.#createServer()
  #port = 0

  get url(): string {
    return `http://${LOOPBACK}:${this.#port}`
  }

  endpoint(event: string): string {
    return `${this.url}/${event}`
  }

  /** Listens, after `stop` on the same port as before. */
  async start(): Promise<void> {
    this.#server = this.#createServer()
    await once(this.#server.listen(this.#port, LOOPBACK), 'listening')
    this.#port = portOf(this.#server)
  }

  /** Refuses and breaks all connections. */
  async stop(): Promise<void> {
    const closed = new Promise<unknown>((resolve) => this.#server.close(resolve))
    this.#server.closeAllConnections()
    await closed
  }

  on(event: string, handler: EventHandler | Answer): void {
    this.handlers.set(event, typeof handler === 'function' ? handler : () => handler)
  }

  /** Lets the requests of an event wait. */
  hold(event: string): HeldEvents {
    let release: HeldEvents['release'] = () => undefined
    const released = new Promise<Answer>((resolve) => {
      release = resolve
    })
    const waiting: EventRequest[] = []
    const waiters: ((request: EventRequest) => void)[] = []
    this.on(event, (request) => {
      const waiter = waiters.shift()
      if (waiter === undefined) waiting.push(request)
      else waiter(request)
      return released
    })
    return {
      next: async () => waiting.shift() ?? new Promise((resolve) => waiters.push(resolve)),
      release: (answer) => release(answer)
    }
  }

  /** The recorded requests of an event. */
  of(event: string): readonly EventRequest[] {
    return this.requests.filter((request) => request.event === event)
  }

  /** Resolves with the next request of an event. */
  next(event: string): Promise<EventRequest> {
    return new Promise((resolve) => this.#waiters.push({ event, resolve }))
  }

  /** Forgets requests and handlers. */
  reset(): void {
    this.requests.length = 0
    this.handlers.clear()
    this.maxConcurrency = 0
  }

  #createServer(): Server {
    const server = createServer((incoming, response) => void this.#handle(incoming, response))
    // Never closes idle connections: a request could otherwise meet a connection that is just being closed.
    server.keepAliveTimeout = 0
    return server
  }

  async #handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    this.concurrency += 1
    this.maxConcurrency = Math.max(this.maxConcurrency, this.concurrency)
    let isAborted = false
    response.once('close', () => {
      this.concurrency -= 1
      isAborted = !response.writableFinished
    })
    const { method = '', url: path = '', headers, headersDistinct } = incoming
    let body: string
    try {
      body = await text(incoming)
    } catch {
      return
    }
    const request: EventRequest = {
      event: new URL(path, this.url).pathname.split('/').at(-1) ?? '',
      method,
      path,
      headers,
      headersDistinct,
      text: body,
      body: JSON.parse(body),
      get isAborted() {
        return isAborted
      }
    }
    this.requests.push(request)
    const index = this.#waiters.findIndex(({ event }) => event === request.event)
    if (index !== -1) this.#waiters.splice(index, 1)[0]?.resolve(request)
    send(response, await (this.handlers.get(request.event) ?? ALLOW)(request, response))
  }
}

const send = (response: ServerResponse, answer: Answer): void => {
  if (answer === HANG || response.destroyed) return
  if (answer === RESET) response.destroy()
  else if (answer instanceof RawAnswer) response.writeHead(answer.status, answer.headers).end(answer.body)
  else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
}

export const startEventBackend = async (t: Teardown): Promise<EventBackend> => {
  const backend = new EventBackend()
  await backend.start()
  t.teardown(() => backend.stop())
  return backend
}
