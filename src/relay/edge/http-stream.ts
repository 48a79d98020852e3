import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Framing } from '../core/framing.js'
import { serverSentEvent, streamLine } from '../core/framing.js'
import type { Relay } from '../core/relay.js'
import { containRequest } from './contain.js'
import { corsHeaders, PREFLIGHT } from './cors.js'
import type { Door, Entered } from './door.js'
import { answer, BODY_TIMEOUT_MS, type Headers, LIVE, limitBodyTime, readBody, TEXT_TYPE } from './http-answer.js'
import { asksForProtobuf } from './protobuf.js'
import { ResponseSink } from './response-sink.js'

export type HttpRoute = (request: IncomingMessage, response: ServerResponse) => void

/** `POST /connection/http_stream`: the body connects; every line of the answer is a reply. */
export const httpStream = (relay: Relay, door: Door): HttpRoute =>
  stream(relay, door, {
    transport: 'http_stream',
    framing: streamLine,
    headers: ['Content-Type', 'text/plain; charset=utf-8'],
    greeting: ''
  })

/** `/connection/sse`: the same as events; who cannot send a body connects in the query. */
export const serverSentEvents = (relay: Relay, door: Door): HttpRoute =>
  stream(relay, door, {
    transport: 'sse',
    framing: serverSentEvent,
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
  (relay: Relay, door: Door, kind: Kind): HttpRoute =>
  (request, response) => {
    const { method } = request
    if (!door.allowsOrigin(request)) {
      answer(response, 403)
      return
    }
    if (method === 'OPTIONS') {
      answer(response, 204, '', [...corsHeaders(request), ...PREFLIGHT])
      return
    }
    const takesQuery = kind.transport === 'sse' && method === 'GET'
    if (method !== 'POST' && !takesQuery) {
      answer(response, 405, '', ['Allow', kind.transport === 'sse' ? 'GET, POST, OPTIONS' : 'POST, OPTIONS'])
      return
    }
    if (asksForProtobuf(request)) {
      answer(response, 400, 'protobuf is not supported\n', [
        ...corsHeaders(request),
        ...TEXT_TYPE,
        'Connection',
        'close'
      ])
      return
    }
    // Counted before the body is read, so that bodies which never end count as connections too.
    void containRequest(relay.context, response, async () => {
      const entered = await door.enter(request)
      if (typeof entered === 'number') {
        answer(response, entered, '', [...corsHeaders(request), ...TEXT_TYPE, 'Connection', 'close'])
      } else if (request.socket.destroyed) entered.leave()
      else admitted(relay, kind, request, response, entered)
    })
  }

const admitted = (
  relay: Relay,
  kind: Kind,
  request: IncomingMessage,
  response: ServerResponse,
  { address, leave }: Entered
): void => {
  const { client } = relay.context
  response.once('close', leave)
  if (request.method === 'GET') {
    begin(relay, kind, request, response, address, connectInQuery(request))
    return
  }
  const cors = corsHeaders(request)
  limitBodyTime(request, response, Math.min(client.staleCloseDelayMs, BODY_TIMEOUT_MS), cors)
  const connect = (body: Buffer): void =>
    void containRequest(relay.context, response, async () =>
      begin(relay, kind, request, response, address, body.toString())
    )
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
  response.writeHead(200, [...headers, ...LIVE, ...corsHeaders(request)])
  response.flushHeaders()
  request.socket.setNoDelay(true)
  request.socket.setTimeout(0)
  if (greeting !== '') response.write(greeting)
  const client = relay.attach(new ResponseSink(transport, framing, response, address))
  response.once('close', () => client.connection.lost())
  client.receive(commands)
}
