import type { IncomingMessage, ServerResponse } from 'node:http'
import { isObject } from '../../shared/is-object.js'
import { jsonOrUndefined } from '../../shared/json-or-undefined.js'
import type { ByteStream, ClientTransport, Framing, TransportName } from '../core/codec/transport.js'
import type { Disconnect } from '../core/codes.js'
import { parseConnectRequest } from '../core/commands/unidirectional-connect.js'
import type { ClientHeaders } from '../core/event-proxies.js'
import type { Relay } from '../core/relay.js'
import { decodeEmulation } from '../protobuf/protobuf-codec.js'
import {
  type Admitted,
  bearerToken,
  type ClientAdmission,
  connectInQuery,
  hasProtobufBody,
  requestsProtobuf
} from './admission.js'
import type { EmulationLimit } from './emulation-limit.js'
import { forwardedRequestHeaders } from './forwarded-headers.js'
import {
  byteStreamFraming,
  lineFraming,
  serverSentEventFraming,
  unidirectionalEventFraming,
  unidirectionalLineFraming
} from './framing.js'
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

/** Sends to a client through an HTTP response that stays open. */
class HttpStreamTransport implements ClientTransport, ByteStream {
  readonly stream = this
  readonly name: TransportName
  readonly framing: Framing
  readonly address: string
  readonly requestHeaders: ClientHeaders | null
  readonly isEmulated: boolean
  readonly isUnidirectional: boolean
  readonly hasOwnPings = false
  readonly pingBytes: Buffer
  readonly #response: ServerResponse
  #drainCallbacks: (() => void)[] = []

  constructor(
    { transport, framing, isUnidirectional }: StreamKind,
    response: ServerResponse,
    address: string,
    requestHeaders: ClientHeaders | null
  ) {
    this.name = transport
    this.framing = framing
    this.isUnidirectional = isUnidirectional
    this.isEmulated = !isUnidirectional
    this.address = address
    this.requestHeaders = requestHeaders
    this.pingBytes = framing.frame(framing.codec.ping)
    this.#response = response
  }

  get writableLength(): number {
    return this.#response.writableLength
  }

  write(bytes: Buffer): void {
    // A response whose socket is not corked sends at the end of the turn, and the client would be behind until then.
    this.cork()
    this.#response.write(bytes, (error) => {
      if (!error && this.writableLength === 0) this.#drained()
    })
    this.uncork()
  }

  // The socket, because `ServerResponse` writes each part by itself when it is uncorked.
  cork(): void {
    this.#response.socket?.cork()
  }

  uncork(): void {
    this.#response.socket?.uncork()
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

  drop(): void {
    this.#response.destroy()
  }

  #drained(): void {
    const callbacks = this.#drainCallbacks
    this.#drainCallbacks = []
    for (const callback of callbacks) callback()
  }
}

const CLOSE_TIMEOUT_MS = 5000

interface StreamKind {
  readonly transport: TransportName
  readonly framing: Framing
  /** The body or query is a connect request, not a connect command. */
  readonly isUnidirectional: boolean
  readonly headers: Headers
  readonly prelude: string
}

const LINE_STREAM: StreamKind = {
  transport: 'http_stream',
  framing: lineFraming,
  isUnidirectional: false,
  headers: ['Content-Type', 'text/plain; charset=utf-8'],
  prelude: ''
}

const BYTE_STREAM: StreamKind = {
  transport: 'http_stream',
  framing: byteStreamFraming,
  isUnidirectional: false,
  headers: ['Content-Type', 'application/octet-stream'],
  prelude: ''
}

const EVENT_STREAM: StreamKind = {
  transport: 'sse',
  framing: serverSentEventFraming,
  isUnidirectional: false,
  headers: ['Content-Type', 'text/event-stream'],
  // Browsers report the connection as open after the first bytes.
  prelude: '\r\n'
}

const UNIDIRECTIONAL_LINE_STREAM: StreamKind = {
  ...LINE_STREAM,
  transport: 'uni_http_stream',
  framing: unidirectionalLineFraming,
  isUnidirectional: true
}

const UNIDIRECTIONAL_EVENT_STREAM: StreamKind = {
  ...EVENT_STREAM,
  transport: 'uni_sse',
  framing: unidirectionalEventFraming,
  isUnidirectional: true
}

/**
 * `POST /connection/http_stream`: the body contains the connect command; the response consists of replies and pushes, one per
 * line, or in protobuf if the body is.
 */
export const httpStream = (relay: Relay, admission: ClientAdmission, errors: RequestErrors): HttpHandler =>
  stream(relay, admission, errors, {
    methods: ['POST'],
    kinds: [LINE_STREAM, BYTE_STREAM],
    maxBodyBytes: () => relay.clientOptions.httpStreamBodyBytes
  })

/** `/connection/sse`: server-sent events. A GET request has the connect command in the query. */
export const serverSentEvents = (relay: Relay, admission: ClientAdmission, errors: RequestErrors): HttpHandler =>
  stream(relay, admission, errors, {
    methods: ['GET', 'POST'],
    kinds: [EVENT_STREAM, null],
    maxBodyBytes: () => relay.clientOptions.sseBodyBytes
  })

/** `POST /connection/uni_http_stream`: the body is a connect request; the response consists of pushes, one per line. */
export const unidirectionalHttpStream = (
  relay: Relay,
  admission: ClientAdmission,
  errors: RequestErrors,
  maxBodyBytes: () => number
): HttpHandler =>
  stream(relay, admission, errors, { methods: ['POST'], kinds: [UNIDIRECTIONAL_LINE_STREAM, null], maxBodyBytes })

/** `/connection/uni_sse`: pushes as server-sent events. The connect request is in the query of a GET request, or in the body. */
export const unidirectionalEvents = (
  relay: Relay,
  admission: ClientAdmission,
  errors: RequestErrors,
  maxBodyBytes: () => number
): HttpHandler =>
  stream(relay, admission, errors, {
    methods: ['GET', 'POST'],
    kinds: [UNIDIRECTIONAL_EVENT_STREAM, null],
    maxBodyBytes
  })

interface StreamOptions {
  readonly methods: readonly string[]
  /** The second is null if the transport has text only. */
  readonly kinds: readonly [json: StreamKind, protobuf: StreamKind | null]
  readonly maxBodyBytes: () => number
}

const stream =
  (relay: Relay, admission: ClientAdmission, errors: RequestErrors, options: StreamOptions): HttpHandler =>
  (request, response) => {
    if (!passesChecks(admission, request, response, options.methods)) return
    const [jsonKind, protobufKind] = options.kinds
    const kind = hasProtobufBody(request) || requestsProtobuf(request.url ?? '') ? protobufKind : jsonKind
    if (kind === null) {
      const headers = [...corsHeaders(request), ...TEXT_TYPE, 'Connection', 'close']
      respond(response, 400, 'this transport is JSON only\n', headers)
      return
    }
    // Admitted before the body is read, so that incomplete requests count against the connection limits.
    void errors.handle(response, async () => {
      const admitted = await admission.admit(request)
      if (typeof admitted === 'number') {
        respond(response, admitted, '', [...corsHeaders(request), ...TEXT_TYPE, 'Connection', 'close'])
      } else if (request.socket.destroyed) admitted.release()
      else openStream(relay, errors, kind, request, response, admitted, options.maxBodyBytes())
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
  { address, release }: Admitted,
  maxBodyBytes: number
): void => {
  response.once('close', release)
  if (request.method === 'GET') {
    startStream(relay, kind, request, response, address, connectInQuery(request))
    return
  }
  const cors = corsHeaders(request)
  limitBodyTime(request, response, Math.min(relay.clientOptions.staleCloseDelayMs, BODY_TIMEOUT_MS), cors)
  const connect = (body: Buffer): void =>
    void errors.handle(response, async () => startStream(relay, kind, request, response, address, body))
  readBody(request, response, maxBodyBytes, connect, cors)
}

const startStream = (
  relay: Relay,
  kind: StreamKind,
  request: IncomingMessage,
  response: ServerResponse,
  address: string,
  commands: string | Buffer
): void => {
  // The request has timed out with 408 already.
  if (response.headersSent) return
  const { isUnidirectional, headers, prelude } = kind
  if (isUnidirectional && parseConnectRequest(commands.toString()) === null) {
    const errorHeaders = [...corsHeaders(request), ...TEXT_TYPE, 'Connection', 'close']
    respond(response, 400, 'malformed connect request\n', errorHeaders)
    return
  }
  response.on('error', () => undefined)
  response.writeHead(200, [...headers, ...STREAM_HEADERS, ...corsHeaders(request)])
  response.flushHeaders()
  request.socket.setNoDelay(true)
  request.socket.setTimeout(0)
  if (prelude !== '') response.write(prelude)
  const transport = new HttpStreamTransport(kind, response, address, forwardedRequestHeaders(request, relay))
  const client = isUnidirectional
    ? relay.connectUnidirectional(transport, bearerToken(request))
    : relay.connect(transport)
  response.once('close', () => client.connectionLost())
  client.handleFrame(commands)
}

/** `POST /emulation`: the commands of a client that receives over HTTP, with the session from its connect reply. */
export const emulation =
  (relay: Relay, admission: ClientAdmission, limit: EmulationLimit, errors: RequestErrors): HttpHandler =>
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
      const address = admission.addressOf(request)
      if (!limit.start(address)) {
        respond(response, 429, '', cors)
        return
      }
      // A load balancer may route the request to another node than the stream.
      const { node, session, data } = message
      const isFound = await relay.handleSessionFrame(node, session, data)
      if (isFound) limit.succeeded(address)
      respond(response, isFound ? 204 : 404, '', cors)
    }
    limitBodyTime(request, response, BODY_TIMEOUT_MS, cors)
    const handleBody = (body: Buffer): void => void errors.handle(response, () => receive(body))
    readBody(request, response, relay.clientOptions.emulationBodyBytes, handleBody, cors)
  }

interface JsonEmulation {
  readonly session: string
  readonly node: string
  readonly data: string
}

const parseEmulation = (text: string): JsonEmulation | null => {
  const value = jsonOrUndefined(text)
  if (!isObject(value)) return null
  const { session, node, data } = value
  if (typeof session !== 'string' || typeof node !== 'string' || typeof data !== 'string') return null
  return { session, node, data }
}
