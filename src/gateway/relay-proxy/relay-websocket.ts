import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { type ClientOptions, type ServerOptions, WebSocket, WebSocketServer } from 'ws'
import { GatewayError } from '../errors.js'
import { onceClosed } from '../http/response-close.js'
import { applyBackPressure, type RelayConnections } from './relay-connections.js'
import { relayHandshakeHeaders, relayResponseHeaders } from './relay-headers.js'
import type { UpgradedConnections } from './relay-upgrades.js'

export interface RelayWebSocketsOptions {
  /** The relay's origin and path prefix. */
  readonly origin: string
  readonly pathPrefix: string
  /** The largest message of a browser. */
  readonly maxPayload: number
  readonly upgraded: UpgradedConnections
  readonly connections: RelayConnections
  readonly log: Logger
}

const HANDSHAKE_TIMEOUT_MS = 10_000
const CLOSE_TIMEOUT_MS = 5_000

const SOCKET_OPTIONS = {
  perMessageDeflate: false,
  // Pings and pongs pass from end to end.
  autoPong: false,
  // The relay and the browser validate what they receive.
  skipUTF8Validation: true,
  closeTimeout: CLOSE_TIMEOUT_MS
}

/** @types/ws does not have `closeTimeout` and `autoPong` yet. */
type WithSocketOptions<Options> = Options & typeof SOCKET_OPTIONS

/**
 * WebSockets of browsers to the relay. The relay's side is opened first: a browser receives the relay's rejection as the
 * response to its own handshake, and what it sends meanwhile waits in its connection.
 */
export class RelayWebSockets {
  readonly #options: RelayWebSocketsOptions
  readonly #server: WebSocketServer
  /** The subprotocols that the relay has selected. */
  readonly #protocols = new WeakMap<IncomingMessage, string>()

  constructor(options: RelayWebSocketsOptions) {
    this.#options = options
    const serverOptions: WithSocketOptions<ServerOptions> = {
      ...SOCKET_OPTIONS,
      noServer: true,
      clientTracking: false,
      maxPayload: options.maxPayload,
      handleProtocols: (_offered, request) => this.#protocols.get(request) || false
    }
    this.#server = new WebSocketServer(serverOptions)
  }

  /**
   * Opens the WebSocket, or sends the response with which the relay rejects it. `release` is called when both sides are
   * closed. Throws if the handshake is malformed or the relay does not respond.
   */
  async open(request: FastifyRequest, reply: FastifyReply, release: () => void): Promise<void> {
    const { raw } = request
    const upgraded = this.#options.upgraded.get(raw)
    const protocols = offeredProtocols(raw)
    if (upgraded === undefined || protocols === null || !isHandshake(raw)) {
      onceClosed(reply.raw, release)
      throw new GatewayError('MALFORMED_REQUEST')
    }

    const relay = this.#connect(request, protocols)
    let isJoined = false
    relay.once('close', () => onceClosed(reply.raw, release))
    onceClosed(reply.raw, () => {
      if (!isJoined) relay.terminate()
    })
    const rejection = await handshakeOf(relay)
    if (rejection !== null) {
      this.#options.log.info({ status: rejection.statusCode }, 'WebSocket rejected by the relay')
      reply.code(rejection.statusCode ?? 502).headers(relayResponseHeaders(rejection.headers))
      await reply.send(rejection)
      return
    }

    reply.hijack()
    reply.raw.statusCode = 101
    this.#protocols.set(raw, relay.protocol)
    // Without calling back, `ws` closes a connection that the browser has ended.
    this.#server.handleUpgrade(raw, upgraded.socket, upgraded.head, (browser) => {
      isJoined = true
      this.#join(browser, relay)
    })
  }

  #connect(request: FastifyRequest, protocols: readonly string[]): WebSocket {
    const { origin, pathPrefix } = this.#options
    const { pathname, search } = new URL(request.raw.url ?? '', origin)
    const clientOptions: WithSocketOptions<ClientOptions> = {
      ...SOCKET_OPTIONS,
      headers: relayHandshakeHeaders(request),
      rejectUnauthorized: true
    }
    const relay = new WebSocket(new URL(`${pathPrefix}${pathname}${search}`, origin), [...protocols], clientOptions)
    // `close` follows every error.
    return relay.on('error', () => undefined)
  }

  #join(browser: WebSocket, relay: WebSocket): void {
    browser.on('error', () => undefined)
    passOn(browser, relay)
    passOn(relay, browser)
    this.#options.connections.watch(browser, relay)
    // The relay may have closed the connection right after it was opened.
    if (relay.readyState === WebSocket.OPEN) relay.resume()
    else browser.close(LOST)
  }
}

const WEBSOCKET_KEY = /^[+/0-9A-Za-z]{22}==$/

const isHandshake = ({ headers }: IncomingMessage): boolean =>
  WEBSOCKET_KEY.test(headers['sec-websocket-key'] ?? '') && headers['sec-websocket-version'] === '13'

// Not `trim` and `\s`, which include the byte A0: `ws` would reject it with a response of its own.
const PROTOCOL_NAME = /^[ \t]*([\w!#$%&'*+.^`|~-]+)[ \t]*$/

/** Null for a malformed list. An empty one counts as absent, because the Python SDK up to 0.6.0 sends it. */
const offeredProtocols = ({ headers }: IncomingMessage): readonly string[] | null => {
  const header = headers['sec-websocket-protocol'] ?? ''
  if (header === '') {
    // `ws` would reject an empty list.
    delete headers['sec-websocket-protocol']
    return []
  }
  const parts = header.split(',')
  const names = new Set(parts.flatMap((part) => PROTOCOL_NAME.exec(part)?.[1] ?? []))
  return names.size === parts.length ? [...names] : null
}

/**
 * Resolves with null when the relay has accepted the WebSocket, which is then paused, or with the response with which the
 * relay rejects it.
 */
const handshakeOf = (relay: WebSocket): Promise<IncomingMessage | null> =>
  new Promise((resolve, reject) => {
    let isTimedOut = false
    const timer = setTimeout(() => {
      isTimedOut = true
      relay.terminate()
    }, HANDSHAKE_TIMEOUT_MS)
    relay.once('open', () => {
      clearTimeout(timer)
      // Its first messages must wait for the browser's side.
      relay.pause()
      resolve(null)
    })
    relay.once('unexpected-response', (_request, response: IncomingMessage) => {
      clearTimeout(timer)
      resolve(response)
    })
    relay.once('error', (cause) => {
      clearTimeout(timer)
      reject(new GatewayError(isTimedOut ? 'RELAY_TIMEOUT' : 'RELAY_UNREACHABLE', { cause }))
    })
  })

// Codes of `ws` that a close frame cannot contain.
const NO_STATUS = 1005
const ABNORMAL = 1006

/** A close code of applications: the other side of the connection was lost. */
const LOST = 4006

/** Forwards everything that one side sends. */
const passOn = (from: WebSocket, to: WebSocket): void => {
  from.on('message', (data, isBinary) => {
    to.send(data, { binary: isBinary })
    applyBackPressure(from, to)
  })
  from.on('ping', (data) => to.ping(data))
  from.on('pong', (data) => to.pong(data))
  from.on('close', (code, reason) => {
    if (code === NO_STATUS) to.close()
    else if (code === ABNORMAL) to.close(LOST)
    else to.close(code, reason)
  })
}
