import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Disconnect } from '../core/codes.js'
import { disconnectPush, PING } from '../core/protocol.js'
import type { Relay } from '../core/relay.js'
import type { ByteStream, ClientTransport, Framing } from '../core/transport.js'
import { type Admitted, asksForProtobuf, type ClientAdmission } from './admission.js'
import { lineFraming, serverSentEventFraming } from './framing.js'
import {
  BODY_TIMEOUT_MS,
  corsHeaders,
  type FailureDependencies,
  type Headers,
  type HttpHandler,
  handleErrors,
  limitBodyTime,
  PREFLIGHT,
  readBody,
  respond,
  STREAM_HEADERS,
  TEXT_TYPE
} from './respond.js'

/** The way out through an HTTP response that does not end. Its own wire: a response does not tell what its socket holds. */
export class HttpStreamTransport implements ClientTransport, ByteStream {
  readonly stream = this
  readonly name: 'http_stream' | 'sse'
  readonly framing: Framing
  readonly address: string
  readonly isEmulated = true
  readonly hasOwnPings = false
  readonly pingBytes: Buffer
  readonly #response: ServerResponse
  #unsentBytes = 0
  #whenDrained: (() => void)[] = []

  constructor(transport: 'http_stream' | 'sse', framing: Framing, response: ServerResponse, address: string) {
    this.name = transport
    this.framing = framing
    this.address = address
    this.pingBytes = framing.frame(PING)
    this.#response = response
  }

  get writableLength(): number {
    return this.#unsentBytes
  }

  write(bytes: Buffer): void {
    this.#unsentBytes += bytes.length
    this.#response.write(bytes, (error) => {
      this.#unsentBytes -= bytes.length
      if (!error && this.#unsentBytes === 0) this.#drained()
    })
  }

  onceDrained(then: () => void): void {
    this.#whenDrained.push(then)
  }

  /** What the client sends comes in requests of its own. */
  pause(): void {}

  resume(): void {}

  /** There is no close frame, so the reason is the last thing said. */
  close(reason: Disconnect): void {
    this.#response.end(this.framing.frame(disconnectPush(reason)))
    // A client that does not read keeps nothing open.
    this.#response.socket?.setTimeout(CLOSE_TIMEOUT_MS, () => this.#response.destroy())
  }

  #drained(): void {
    const waiting = this.#whenDrained
    this.#whenDrained = []
    for (const then of waiting) then()
  }
}

const CLOSE_TIMEOUT_MS = 5000

/** `POST /connection/http_stream`: the body connects; every line of the answer is a reply. */
export const httpStream = (relay: Relay, admission: ClientAdmission, failures: FailureDependencies): HttpHandler =>
  stream(relay, admission, failures, {
    transport: 'http_stream',
    framing: lineFraming,
    headers: ['Content-Type', 'text/plain; charset=utf-8'],
    greeting: ''
  })

/** `/connection/sse`: the same as events; who cannot send a body connects in the query. */
export const serverSentEvents = (
  relay: Relay,
  admission: ClientAdmission,
  failures: FailureDependencies
): HttpHandler =>
  stream(relay, admission, failures, {
    transport: 'sse',
    framing: serverSentEventFraming,
    headers: ['Content-Type', 'text/event-stream'],
    // Browsers count the connection as open when something has come.
    greeting: '\r\n'
  })

interface Kind {
  readonly transport: 'http_stream' | 'sse'
  readonly framing: Framing
  readonly headers: Headers
  readonly greeting: string
}

const stream =
  (relay: Relay, admission: ClientAdmission, failures: FailureDependencies, kind: Kind): HttpHandler =>
  (request, response) => {
    const { method } = request
    if (!admission.allowsOrigin(request)) {
      respond(response, 403)
      return
    }
    if (method === 'OPTIONS') {
      respond(response, 204, '', [...corsHeaders(request), ...PREFLIGHT])
      return
    }
    const takesQuery = kind.transport === 'sse' && method === 'GET'
    if (method !== 'POST' && !takesQuery) {
      respond(response, 405, '', ['Allow', kind.transport === 'sse' ? 'GET, POST, OPTIONS' : 'POST, OPTIONS'])
      return
    }
    if (asksForProtobuf(request)) {
      respond(response, 400, 'protobuf is not supported\n', [
        ...corsHeaders(request),
        ...TEXT_TYPE,
        'Connection',
        'close'
      ])
      return
    }
    // Counted before the body is read, so that bodies which never end count as connections too.
    void handleErrors(failures, response, async () => {
      const entered = await admission.admit(request)
      if (typeof entered === 'number') {
        respond(response, entered, '', [...corsHeaders(request), ...TEXT_TYPE, 'Connection', 'close'])
      } else if (request.socket.destroyed) entered.release()
      else admitted(relay, failures, kind, request, response, entered)
    })
  }

const admitted = (
  relay: Relay,
  failures: FailureDependencies,
  kind: Kind,
  request: IncomingMessage,
  response: ServerResponse,
  { address, release: leave }: Admitted
): void => {
  const { clientOptions: client } = relay
  response.once('close', leave)
  if (request.method === 'GET') {
    begin(relay, kind, request, response, address, connectInQuery(request))
    return
  }
  const cors = corsHeaders(request)
  limitBodyTime(request, response, Math.min(client.staleCloseDelayMs, BODY_TIMEOUT_MS), cors)
  const connect = (body: Buffer): void =>
    void handleErrors(failures, response, async () => begin(relay, kind, request, response, address, body.toString()))
  readBody(request, response, client.messageSizeLimit, connect, cors)
}

const connectInQuery = ({ url = '' }: IncomingMessage): string =>
  new URLSearchParams(url.slice(url.indexOf('?') + 1)).get('cf_connect') ?? ''

const begin = (
  relay: Relay,
  { transport, framing, headers, greeting }: Kind,
  request: IncomingMessage,
  response: ServerResponse,
  address: string,
  commands: string
): void => {
  // The time for the body was over just before it was complete.
  if (response.headersSent) return
  response.on('error', () => undefined)
  response.writeHead(200, [...headers, ...STREAM_HEADERS, ...corsHeaders(request)])
  response.flushHeaders()
  request.socket.setNoDelay(true)
  request.socket.setTimeout(0)
  if (greeting !== '') response.write(greeting)
  const client = relay.connect(new HttpStreamTransport(transport, framing, response, address))
  response.once('close', () => client.connectionLost())
  client.handleFrame(commands)
}

const MAX_EMULATION_BYTES = 65_536

/** `POST /emulation`: what a client over a response says, with the session that it was given. */
export const emulation =
  (relay: Relay, admission: ClientAdmission, failures: FailureDependencies): HttpHandler =>
  (request, response) => {
    if (!admission.allowsOrigin(request)) {
      respond(response, 403)
      return
    }
    const cors = corsHeaders(request)
    if (request.method === 'OPTIONS') {
      respond(response, 204, '', [...cors, ...PREFLIGHT])
      return
    }
    if (request.method !== 'POST') {
      respond(response, 405, '', ['Allow', 'POST, OPTIONS'])
      return
    }
    if (asksForProtobuf(request)) {
      respond(response, 400, 'protobuf is not supported\n', [...cors, ...TEXT_TYPE, 'Connection', 'close'])
      return
    }
    const receive = async (body: Buffer): Promise<void> => {
      // The time for the body was over just before it was complete.
      if (response.headersSent) return
      const message = parseEmulation(body.toString())
      if (message === null) {
        respond(response, 400, '', cors)
        return
      }
      // A load balancer may bring it to another node than the one that holds the response.
      const { node, session, data } = message
      const isFound = await relay.handleSessionFrame(node, session, data)
      respond(response, isFound ? 204 : 404, '', cors)
    }
    limitBodyTime(request, response, BODY_TIMEOUT_MS, cors)
    const take = (body: Buffer): void => void handleErrors(failures, response, () => receive(body))
    readBody(request, response, MAX_EMULATION_BYTES, take, cors)
  }

interface Emulated {
  readonly session: string
  readonly node: string
  readonly data: string
}

const parseEmulation = (text: string): Emulated | null => {
  try {
    const { session, node, data } = Object(JSON.parse(text)) as Record<string, unknown>
    if (typeof session !== 'string' || typeof node !== 'string' || typeof data !== 'string') return null
    return { session, node, data }
  } catch {
    return null
  }
}
