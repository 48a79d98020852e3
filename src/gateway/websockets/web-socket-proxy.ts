import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { GatewayError } from '../errors.js'
import type { OpenReplies, RequestEnded } from '../http/open-replies.js'
import { onceClosed } from '../http/response-close.js'
import { type HandshakeTarget, startHandshake } from './backend-handshake.js'
import type { LastingConnections, WebSocketSession } from './connections.js'
import { WebSocketTunnel } from './tunnel.js'
import type { UpgradedConnection, UpgradedConnections } from './upgrades.js'

export interface WebSocketProxyOptions {
  /** The largest message of a browser. */
  readonly maxMessageBytes: number
  readonly upgraded: UpgradedConnections
  readonly connections: LastingConnections
  readonly openReplies: OpenReplies
  readonly requestEnded: RequestEnded
  readonly log: Logger
  /** The name of the other side in log lines about rejected WebSockets. */
  readonly peer: string
}

/** The options of one WebSocket; the proxy has those of all. */
export interface ProxiedWebSocket {
  readonly target: HandshakeTarget
  /** The headers of a response with which the backend rejects it, for the browser. */
  readonly rejectionHeaders: (response: IncomingMessage) => OutgoingHttpHeaders
  /** Null if the WebSocket does not end with a session. */
  readonly session: WebSocketSession | null
  /** Called when both sides are open. */
  readonly opened?: () => void
  /** Called when both sides are closed. */
  readonly release: () => void
}

const MAX_STATUS = 599

/** A browser sends nothing before its WebSocket is open; other clients may. */
const MAX_EARLY_BYTES = 64 * 1024

/**
 * Passes WebSockets of browsers on. The backend's side is opened first: a browser receives the backend's rejection as the
 * response to its own handshake, and what it sends meanwhile is kept.
 */
export class WebSocketProxy {
  readonly #options: WebSocketProxyOptions

  constructor(options: WebSocketProxyOptions) {
    this.#options = options
  }

  /**
   * Opens the WebSocket, or sends the response with which the backend rejects it. Throws if the handshake is malformed or the
   * backend does not respond.
   */
  async open(request: FastifyRequest, reply: FastifyReply, webSocket: ProxiedWebSocket): Promise<void> {
    const { raw } = request
    const { release, target } = webSocket
    const upgraded = this.#options.upgraded.get(raw)
    if (upgraded === undefined || !isHandshake(raw)) {
      onceClosed(reply.raw, release)
      throw new GatewayError('MALFORMED_REQUEST')
    }
    const early = readEarly(upgraded)
    const handshake = startHandshake(target)
    // Before the tunnel exists, the connection to the backend ends with the browser's.
    let isOpen = false
    onceClosed(reply.raw, () => {
      if (isOpen) return
      handshake.abort()
      release()
    })
    const result = await handshake.result
    if (result.kind === 'rejected') {
      await this.#reject(reply, result.response, webSocket)
      return
    }
    const { socket: backend, response, head } = result
    // The browser has ended its connection in the meantime.
    if (!upgraded.socket.readable || !upgraded.socket.writable) {
      reply.hijack()
      backend.destroy()
      upgraded.socket.destroy()
      return
    }
    isOpen = true
    webSocket.opened?.()
    const fromBrowser = early()
    reply.hijack()
    reply.raw.statusCode = 101
    upgraded.socket.setTimeout(0).setNoDelay(true)
    upgraded.socket.write(acceptingResponse(response))
    const tunnel = new WebSocketTunnel(upgraded.socket, backend, {
      hasExtensions: response.headers['sec-websocket-extensions'] !== undefined,
      maxMessageBytes: this.#options.maxMessageBytes
    })
    tunnel.onceClosed(release)
    this.#options.connections.watch(tunnel, webSocket.session)
    tunnel.start(fromBrowser, head)
    this.#endWith(reply)
  }

  async #reject(reply: FastifyReply, response: IncomingMessage, webSocket: ProxiedWebSocket): Promise<void> {
    const { log, peer } = this.#options
    const { target, rejectionHeaders } = webSocket
    const { statusCode = 0 } = response
    if (statusCode > MAX_STATUS) {
      response.destroy()
      throw new GatewayError(target.errors.unreachable, { cause: new Error(`invalid response status ${statusCode}`) })
    }
    log.info({ status: statusCode }, `WebSocket rejected by the ${peer}`)
    response.setTimeout(target.timeoutMs, () => response.destroy())
    reply.code(statusCode).headers(rejectionHeaders(response))
    await reply.send(response)
  }

  /** Fastify calls no `onResponse` hook, because nothing is sent with this reply. */
  #endWith(reply: FastifyReply): void {
    const { openReplies, requestEnded } = this.#options
    onceClosed(reply.raw, () => {
      if (openReplies.remove(reply)) requestEnded(reply, false)
    })
  }
}

/**
 * Reads from a browser until the returned function is called, which returns what has arrived: a connection that is not read does
 * not notice that the browser has left. Then it is destroyed, which ends the handshake.
 */
const readEarly = ({ socket, head }: UpgradedConnection): (() => Buffer) => {
  const chunks = [head]
  let bytes = head.length
  const keep = (chunk: Buffer): void => {
    bytes += chunk.length
    if (bytes > MAX_EARLY_BYTES + head.length) socket.destroy()
    else chunks.push(chunk)
  }
  const leave = (): void => void socket.destroy()
  socket.on('data', keep).once('end', leave)
  return () => {
    socket.off('data', keep).off('end', leave).pause()
    return Buffer.concat(chunks)
  }
}

/** The browser's own key was sent to the backend, so the backend's response is valid for the browser. */
const acceptingResponse = ({ headers }: IncomingMessage): string => {
  const names = ['sec-websocket-accept', 'sec-websocket-protocol', 'sec-websocket-extensions']
  const lines = names.flatMap((name) => (headers[name] === undefined ? [] : [`${name}: ${headers[name]}\r\n`]))
  return `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n${lines.join('')}\r\n`
}

const WEBSOCKET_KEY = /^[+/0-9A-Za-z]{22}==$/

const isHandshake = ({ headers }: IncomingMessage): boolean =>
  WEBSOCKET_KEY.test(headers['sec-websocket-key'] ?? '') &&
  headers['sec-websocket-version'] === '13' &&
  hasValidProtocols(headers)

const PROTOCOL_NAME = /^[ \t]*([\w!#$%&'*+.^`|~-]+)[ \t]*$/

/** An empty list counts as absent, because the Python SDK up to 0.6.0 sends it. */
const hasValidProtocols = (headers: IncomingMessage['headers']): boolean => {
  const parts = (headers['sec-websocket-protocol'] || 'none').split(',')
  const names = new Set(parts.flatMap((part) => PROTOCOL_NAME.exec(part)?.[1] ?? []))
  return names.size === parts.length
}
