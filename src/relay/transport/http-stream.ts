import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Disconnect } from '../core/codes.js'
import { isObject } from '../core/json.js'
import type { Relay } from '../core/relay.js'
import type { ByteStream, ClientTransport, Framing } from '../core/transport.js'
import { decodeEmulation } from '../protobuf/codec.js'
import { type Admitted, type ClientAdmission, hasProtobufBody, requestsProtobuf } from './admission.js'
import { byteStreamFraming, lineFraming, serverSentEventFraming } from './framing.js'
import {
  BODY_TIMEOUT_MS,
  corsHeaders,
  type Headers,
  type HttpHandler,
  limitBodyTime,
  PREFLIGHT,
  type RequestErrors,
  readBody,
  respond,
  STREAM_HEADERS,
  TEXT_TYPE
} from './respond.js'

/** Sends to a client through an HTTP response that stays open. Counts the unsent bytes, which `ServerResponse` does not report. */
class HttpStreamTransport implements ClientTransport, ByteStream {
  readonly stream = this
  readonly name: 'http_stream' | 'sse'
  readonly framing: Framing
  readonly address: string
  readonly isEmulated = true
  readonly hasOwnPings = false
  readonly pingBytes: Buffer
  readonly #response: ServerResponse
  #unsentBytes = 0
  #drainCallbacks: (() => void)[] = []

  constructor(transport: 'http_stream' | 'sse', framing: Framing, response: ServerResponse, address: string) {
    this.name = transport
    this.framing = framing
    this.address = address
    this.pingBytes = framing.frame(framing.codec.ping)
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

  onceDrained(callback: () => void): void {
    this.#drainCallbacks.push(callback)
  }

  /** Commands arrive in separate requests, so there is nothing to pause. */
  pause(): void {}

  resume(): void {}

  /** There is no close frame: the last message is a disconnect push. */
  close(reason: Disconnect): void {
    this.#response.end(this.framing.frame(this.framing.codec.push({ kind: 'disconnect', disconnect: reason })))
    // Closes the connection of a client that does not read.
    this.#response.socket?.setTimeout(CLOSE_TIMEOUT_MS, () => this.#response.destroy())
  }

  #drained(): void {
    const callbacks = this.#drainCallbacks
    this.#drainCallbacks = []
    for (const callback of callbacks) callback()
  }
}

const CLOSE_TIMEOUT_MS = 5000

interface StreamKind {
  readonly transport: 'http_stream' | 'sse'
  readonly framing: Framing
  readonly headers: Headers
  readonly prelude: string
}

const LINE_STREAM: StreamKind = {
  transport: 'http_stream',
  framing: lineFraming,
  headers: ['Content-Type', 'text/plain; charset=utf-8'],
  prelude: ''
}

const BYTE_STREAM: StreamKind = {
  transport: 'http_stream',
  framing: byteStreamFraming,
  headers: ['Content-Type', 'application/octet-stream'],
  prelude: ''
}

const EVENT_STREAM: StreamKind = {
  transport: 'sse',
  framing: serverSentEventFraming,
  headers: ['Content-Type', 'text/event-stream'],
  // Browsers report the connection as open after the first bytes.
  prelude: '\r\n'
}

/**
 * `POST /connection/http_stream`: the body contains the connect command; the response consists of replies and pushes, one per
 * line, or in protobuf if the body is.
 */
export const httpStream = (relay: Relay, admission: ClientAdmission, errors: RequestErrors): HttpHandler =>
  stream(relay, admission, errors, ['POST'], LINE_STREAM, BYTE_STREAM)

/** `/connection/sse`: server-sent events. A GET request has the connect command in the query. */
export const serverSentEvents = (relay: Relay, admission: ClientAdmission, errors: RequestErrors): HttpHandler =>
  stream(relay, admission, errors, ['GET', 'POST'], EVENT_STREAM, null)

/** `protobufKind` is null if the transport has text only. */
const stream =
  (
    relay: Relay,
    admission: ClientAdmission,
    errors: RequestErrors,
    methods: readonly string[],
    jsonKind: StreamKind,
    protobufKind: StreamKind | null
  ): HttpHandler =>
  (request, response) => {
    if (!passesChecks(admission, request, response, methods)) return
    const kind = hasProtobufBody(request) || requestsProtobuf(request.url ?? '') ? protobufKind : jsonKind
    if (kind === null) {
      const headers = [...corsHeaders(request), ...TEXT_TYPE, 'Connection', 'close']
      respond(response, 400, 'server-sent events are JSON only\n', headers)
      return
    }
    // Admitted before the body is read, so that incomplete requests count against the connection limits.
    void errors.handle(response, async () => {
      const admitted = await admission.admit(request)
      if (typeof admitted === 'number') {
        respond(response, admitted, '', [...corsHeaders(request), ...TEXT_TYPE, 'Connection', 'close'])
      } else if (request.socket.destroyed) admitted.release()
      else openStream(relay, errors, kind, request, response, admitted)
    })
  }

/** The checks of all requests by clients. Responds and returns false if the request ends here. */
const passesChecks = (
  admission: ClientAdmission,
  request: IncomingMessage,
  response: ServerResponse,
  methods: readonly string[]
): boolean => {
  const { method = '' } = request
  if (!admission.allowsOrigin(request)) respond(response, 403)
  else if (method === 'OPTIONS') respond(response, 204, '', [...corsHeaders(request), ...PREFLIGHT])
  else if (!methods.includes(method)) respond(response, 405, '', ['Allow', [...methods, 'OPTIONS'].join(', ')])
  else return true
  return false
}

const openStream = (
  relay: Relay,
  errors: RequestErrors,
  kind: StreamKind,
  request: IncomingMessage,
  response: ServerResponse,
  { address, release }: Admitted
): void => {
  const { clientOptions: client } = relay
  response.once('close', release)
  if (request.method === 'GET') {
    startStream(relay, kind, request, response, address, connectInQuery(request))
    return
  }
  const cors = corsHeaders(request)
  limitBodyTime(request, response, Math.min(client.staleCloseDelayMs, BODY_TIMEOUT_MS), cors)
  const connect = (body: Buffer): void =>
    void errors.handle(response, async () => startStream(relay, kind, request, response, address, body))
  readBody(request, response, client.messageSizeLimit, connect, cors)
}

const connectInQuery = ({ url = '' }: IncomingMessage): string =>
  new URLSearchParams(url.slice(url.indexOf('?') + 1)).get('cf_connect') ?? ''

const startStream = (
  relay: Relay,
  { transport, framing, headers, prelude }: StreamKind,
  request: IncomingMessage,
  response: ServerResponse,
  address: string,
  commands: string | Buffer
): void => {
  // The request has timed out with 408 already.
  if (response.headersSent) return
  response.on('error', () => undefined)
  response.writeHead(200, [...headers, ...STREAM_HEADERS, ...corsHeaders(request)])
  response.flushHeaders()
  request.socket.setNoDelay(true)
  request.socket.setTimeout(0)
  if (prelude !== '') response.write(prelude)
  const client = relay.connect(new HttpStreamTransport(transport, framing, response, address))
  response.once('close', () => client.connectionLost())
  client.handleFrame(commands)
}

const MAX_EMULATION_BYTES = 65_536

/** `POST /emulation`: the commands of a client that receives over HTTP, with the session from its connect reply. */
export const emulation =
  (relay: Relay, admission: ClientAdmission, errors: RequestErrors): HttpHandler =>
  (request, response) => {
    if (!passesChecks(admission, request, response, ['POST'])) return
    const cors = corsHeaders(request)
    const receive = async (body: Buffer): Promise<void> => {
      // The request has timed out with 408 already.
      if (response.headersSent) return
      const message = hasProtobufBody(request) ? decodeEmulation(body) : parseEmulation(body.toString())
      if (message === null) {
        respond(response, 400, '', cors)
        return
      }
      // A load balancer may route the request to another node than the stream.
      const { node, session, data } = message
      const isFound = await relay.handleSessionFrame(node, session, data)
      respond(response, isFound ? 204 : 404, '', cors)
    }
    limitBodyTime(request, response, BODY_TIMEOUT_MS, cors)
    const handleBody = (body: Buffer): void => void errors.handle(response, () => receive(body))
    readBody(request, response, MAX_EMULATION_BYTES, handleBody, cors)
  }

interface EmulationRequest {
  readonly session: string
  readonly node: string
  readonly data: string
}

const parseEmulation = (text: string): EmulationRequest | null => {
  try {
    const value: unknown = JSON.parse(text)
    if (!isObject(value)) return null
    const { session, node, data } = value
    if (typeof session !== 'string' || typeof node !== 'string' || typeof data !== 'string') return null
    return { session, node, data }
  } catch {
    return null
  }
}
