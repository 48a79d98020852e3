import { createHash } from 'node:crypto'
import { request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Duplex } from 'node:stream'
import { GatewayError, type GatewayErrorCode } from '../errors.js'

/** Where a WebSocket leads. */
export interface HandshakeTarget {
  readonly origin: string
  /** With the query. */
  readonly path: string
  /** Headers of the handshake besides Connection and Upgrade, with the key of the browser. */
  readonly headers: OutgoingHttpHeaders
  /** For connecting and the response together. */
  readonly timeoutMs: number
  readonly errors: { readonly unreachable: GatewayErrorCode; readonly timeout: GatewayErrorCode }
}

export type HandshakeResult =
  /** The backend has accepted: the connection, and the bytes that followed the response. */
  | { readonly kind: 'accepted'; readonly response: IncomingMessage; readonly socket: Duplex; readonly head: Buffer }
  /** Any response but 101. */
  | { readonly kind: 'rejected'; readonly response: IncomingMessage }

export interface Handshake {
  /** Throws a `GatewayError` if there is no valid response. */
  readonly result: Promise<HandshakeResult>
  /** Closes the connection to the backend. */
  readonly abort: () => void
}

/** Sends the handshake of a browser to a backend, on a connection of its own. */
export const startHandshake = (target: HandshakeTarget): Handshake => {
  const { origin, path, headers, timeoutMs, errors } = target
  const { protocol, hostname, port } = new URL(origin)
  const send = protocol === 'https:' ? httpsRequest : httpRequest
  const request = send({
    protocol,
    hostname: hostname.replace(/^\[(.*)\]$/, '$1'),
    port,
    path,
    headers: { ...headers, connection: 'Upgrade', upgrade: 'websocket' },
    agent: false,
    rejectUnauthorized: true
  })
  const result = new Promise<HandshakeResult>((resolve, reject) => {
    let isTimedOut = false
    const fail = (cause: Error): void =>
      reject(new GatewayError(isTimedOut ? errors.timeout : errors.unreachable, { cause }))
    const timer = setTimeout(() => {
      isTimedOut = true
      request.destroy(new Error('no response to the WebSocket handshake'))
    }, timeoutMs)
    request.once('upgrade', (response, socket, head) => {
      clearTimeout(timer)
      // Until the tunnel listens itself.
      socket.on('error', () => undefined)
      const reason = flawOf(response, headers)
      if (reason === null) return resolve({ kind: 'accepted', response, socket, head })
      socket.destroy()
      fail(new Error(reason))
    })
    request.once('response', (response) => {
      clearTimeout(timer)
      // A 101 without `Upgrade` accepts nothing.
      if ((response.statusCode ?? 0) >= 200) return resolve({ kind: 'rejected', response })
      response.destroy()
      fail(new Error('not an upgrade to WebSocket'))
    })
    request.on('error', (cause) => {
      clearTimeout(timer)
      fail(cause)
    })
    request.end()
  })
  return { result, abort: () => request.destroy(new Error('the client disconnected')) }
}

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

/** Why a response with 101 does not open the WebSocket that was requested; null if it does. */
const flawOf = ({ statusCode, headers }: IncomingMessage, sent: HandshakeTarget['headers']): string | null => {
  if (statusCode !== 101 || headers.upgrade?.toLowerCase() !== 'websocket') return 'not an upgrade to WebSocket'
  const expected = createHash('sha1').update(`${sent['sec-websocket-key']}${GUID}`).digest('base64')
  if (headers['sec-websocket-accept'] !== expected) return 'Sec-WebSocket-Accept does not match the key'
  const protocol = headers['sec-websocket-protocol']
  if (protocol !== undefined && !namesIn(sent['sec-websocket-protocol']).includes(protocol))
    return 'a subprotocol that was not offered'
  return headers['sec-websocket-extensions'] !== undefined && sent['sec-websocket-extensions'] === undefined
    ? 'an extension that was not offered'
    : null
}

const namesIn = (list: OutgoingHttpHeaders[string]): string[] =>
  String(list ?? '')
    .split(',')
    .map((name) => name.trim())
