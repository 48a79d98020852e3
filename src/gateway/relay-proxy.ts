import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Duplex, Readable } from 'node:stream'
import httpProxy, { type FastifyHttpProxyOptions } from '@fastify/http-proxy'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Logger } from 'pino'
import { buildConnector, Pool } from 'undici'
import { isWebSocketHandshake, pathOf, returnToHttp } from '../shared/http-upgrade.js'
import { RELAY_CONNECTION_PREFIX, RELAY_EMULATION_PATH } from './access.js'
import type { GatewayConfig } from './config.js'
import { GatewayError } from './errors.js'
import { reachable } from './health.js'
import type { GatewayMetrics } from './metrics.js'
import type { OpenReplies, RequestEnded } from './open-replies.js'
import { limitedBody } from './proxy/body-limit.js'
import { HOP_BY_HOP } from './proxy/request-headers.js'
import { applyBackPressure, BrowserSocket, RelayConnections } from './relay-connections.js'
import { browserHost, browserProtocol, onceClosed } from './request-context.js'

export interface RelayProxyOptions {
  readonly relay: NonNullable<GatewayConfig['relay']>
  readonly bodyBytes: number
  readonly log: Logger
  readonly metrics: GatewayMetrics
  readonly openReplies: OpenReplies
  readonly requestEnded: RequestEnded
}

const CONNECT_TIMEOUT_MS = 5_000
const HEADERS_TIMEOUT_MS = 10_000
const CLOSE_TIMEOUT_MS = 5_000

/** Whether the connection of a request becomes a WebSocket to the relay. */
export const isRelayUpgrade = (request: IncomingMessage): boolean =>
  isWebSocketHandshake(request) && isBelowPrefix(request)

/** Exactly the paths whose upgrades the library handles. */
const isBelowPrefix = (request: IncomingMessage): boolean => {
  const path = pathOf(request)
  return path === RELAY_CONNECTION_PREFIX || path.startsWith(`${RELAY_CONNECTION_PREFIX}/`)
}

/**
 * Serves the client endpoints of the relay, so that pages and their realtime connections have one origin: WebSocket,
 * HTTP streaming, server-sent events and emulation. The relay checks origin and token itself.
 */
export const relayProxy = fp<RelayProxyOptions>(
  async (app, { relay, bodyBytes, log, metrics, openReplies, requestEnded }) => {
    const { origin, pathname } = new URL(relay.url)
    const pathPrefix = pathname.replace(/\/+$/, '')
    const connections = new RelayConnections(relay, log)
    const isUp = reachable({ origin, path: `${pathPrefix}/health` })
    const pool = new Pool(origin, {
      // Every stream occupies a connection; `connections` has their limit.
      connections: null,
      pipelining: 1,
      headersTimeout: HEADERS_TIMEOUT_MS,
      bodyTimeout: relay.idleMs,
      connect: buildConnector({ timeout: CONNECT_TIMEOUT_MS, rejectUnauthorized: true, allowH2: false })
    })
    metrics.addGauge('gateway_relay_connections', 'Open connections to the relay.', () => connections.size)
    acceptUpgrades(app)

    /** Before the WebSocket is accepted, because afterwards there is no error response. */
    const prepareUpgrade = async ({ raw }: FastifyRequest, reply: FastifyReply): Promise<void> => {
      const { 'sec-websocket-key': key = '', 'sec-websocket-version': version = '' } = raw.headers
      if (!WEBSOCKET_KEY.test(key) || version !== '13') throw new GatewayError('MALFORMED_REQUEST')
      // The Python SDK up to 0.6.0 sends this header with an empty value, which `ws` would reject.
      if (raw.headers['sec-websocket-protocol']?.trim() === '') delete raw.headers['sec-websocket-protocol']
      const state = await isUp()
      if (state.status === 'down') {
        throw new GatewayError(state.reason === 'timeout' ? 'RELAY_TIMEOUT' : 'RELAY_UNREACHABLE', {
          cause: new Error(`health check of the relay: ${state.reason}`)
        })
      }
      reply.raw.statusCode = 101
      // Fastify calls no `onResponse` hook, because nothing is sent with this reply.
      onceClosed(reply.raw, () => {
        if (openReplies.remove(reply)) requestEnded(reply, false)
      })
    }

    const options = {
      upstream: origin,
      undici: pool,
      disableRequestLogging: true,
      // The parser below limits the body; the parser of the library does not.
      proxyPayloads: false,
      preHandler: async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
        connections.admit(reply)
        if (isRelayUpgrade(request.raw)) await prepareUpgrade(request, reply)
      },
      replyOptions: {
        rewriteRequestHeaders: requestHeaders,
        rewriteHeaders: responseHeaders,
        // By default the library repeats reads after a 503.
        retryDelay: () => null,
        onError: (reply: { send(error: Error): unknown }, { error }: { error: Error }) =>
          void reply.send(toRelayError(error))
      }
    }

    await app.register(async (scope) => {
      scope.removeAllContentTypeParsers()
      scope.addContentTypeParser('*', async (request: FastifyRequest, body: Readable) =>
        limitedBody(request, body, bodyBytes)
      )
      await scope.register(httpProxy, {
        ...options,
        prefix: RELAY_CONNECTION_PREFIX,
        rewritePrefix: `${pathPrefix}${RELAY_CONNECTION_PREFIX}`,
        routes: ['/*'],
        httpMethods: ['GET', 'POST', 'OPTIONS'],
        websocket: true,
        wsServerOptions: webSocketServerOptions(bodyBytes),
        wsClientOptions: webSocketClientOptions(log),
        wsHooks: {
          onConnect: (_context, browser, target) => connections.watch(browser, target),
          onIncomingMessage: (_context, browser, target) => applyBackPressure(browser, target),
          onOutgoingMessage: (_context, browser, target) => applyBackPressure(target, browser)
        }
      })
      await scope.register(httpProxy, {
        ...options,
        prefix: RELAY_EMULATION_PATH,
        rewritePrefix: `${pathPrefix}${RELAY_EMULATION_PATH}`,
        routes: ['/'],
        httpMethods: ['POST', 'OPTIONS']
      })
    })

    app.addHook('preClose', async () => connections.close())
    app.addHook('onClose', async () => pool.destroy())
  },
  { name: 'relay-proxy', fastify: '5.x', dependencies: ['session-exchange'] }
)

const WEBSOCKET_KEY = /^[+/0-9A-Za-z]{22}==$/

/** The library handles upgrades below its prefix. All others are ordinary requests. */
const acceptUpgrades = ({ server }: FastifyInstance): void => {
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    // Node removes its own listener, and an error without one would end the process.
    socket.on('error', () => socket.destroy())
    if (!isBelowPrefix(request)) returnToHttp(server, request, socket, head)
  })
}

type ServerOptions = NonNullable<FastifyHttpProxyOptions['wsServerOptions']>
type ClientOptions = NonNullable<FastifyHttpProxyOptions['wsClientOptions']>

/** @types/ws does not have `closeTimeout` yet. */
interface CloseTimeout {
  readonly closeTimeout: number
}

const SOCKET_OPTIONS = {
  perMessageDeflate: false,
  // Pings and pongs pass from end to end.
  autoPong: false,
  // The relay and the browser validate what they receive.
  skipUTF8Validation: true,
  closeTimeout: CLOSE_TIMEOUT_MS
}

const webSocketServerOptions = (maxPayload: number): ServerOptions & CloseTimeout => ({
  ...SOCKET_OPTIONS,
  maxPayload,
  // Any subclass will do; the type also asks for the members of the module.
  WebSocket: BrowserSocket as NonNullable<ServerOptions['WebSocket']>
})

/** The types of the proxy library do not have `rewriteRequestHeaders`, which it documents. */
interface RewriteHeaders {
  readonly rewriteRequestHeaders: (headers: unknown, request: FastifyRequest) => IncomingHttpHeaders
}

const webSocketClientOptions = (log: Logger): ClientOptions & CloseTimeout & RewriteHeaders => ({
  ...SOCKET_OPTIONS,
  handshakeTimeout: HEADERS_TIMEOUT_MS,
  rejectUnauthorized: true,
  rewriteRequestHeaders: (_headers, request) => relayHeaders(request, WEBSOCKET_HEADERS),
  finishRequest: (request, webSocket) => {
    // The library adds a listener for every message that arrives before the relay accepts.
    webSocket.setMaxListeners(0)
    // Only a handshake that the relay rejected has a response.
    request.once('response', (response) => {
      log.info({ status: response.statusCode }, 'WebSocket rejected by the relay')
      response.resume()
    })
    request.end()
  }
})

// Lists of what is forwarded, so that cookies, `Authorization` and unknown headers never reach the relay.
const WEBSOCKET_HEADERS = ['origin', 'user-agent']
const READ_HEADERS = [...WEBSOCKET_HEADERS, 'accept', 'access-control-request-headers', 'access-control-request-method']
const POST_HEADERS = [...READ_HEADERS, 'content-type', 'content-length', 'content-encoding']

const requestHeaders = (request: Pick<FastifyRequest, 'method'>): IncomingHttpHeaders =>
  // The library declares a request of any kind of server; this one is a FastifyRequest of the gateway.
  relayHeaders(request as FastifyRequest, request.method === 'POST' ? POST_HEADERS : READ_HEADERS)

const relayHeaders = (request: FastifyRequest, names: readonly string[]): IncomingHttpHeaders => {
  const { headers } = request.raw
  const forwarded = names.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]] as const]))
  return {
    ...Object.fromEntries(forwarded),
    // The relay compares it with the origin of the page.
    host: browserHost(request),
    'x-forwarded-for': request.clientAddress,
    'x-forwarded-proto': browserProtocol(request),
    'x-request-id': request.id
  }
}

// Cookies of this origin belong to the gateway.
const NOT_TO_BROWSER: ReadonlySet<string> = new Set([...HOP_BY_HOP, 'set-cookie', 'server', 'x-powered-by'])

const responseHeaders = <Headers extends object>(headers: Headers): Headers =>
  // The same headers without some optional ones.
  Object.fromEntries(Object.entries(headers).filter(([name]) => !NOT_TO_BROWSER.has(name))) as Headers

const TIMEOUT_CODES: ReadonlySet<unknown> = new Set(['FST_REPLY_FROM_GATEWAY_TIMEOUT', 'UND_ERR_CONNECT_TIMEOUT'])

/** Maps an error of the proxy library. The library wraps an error of the request body, such as BODY_TOO_LARGE. */
const toRelayError = (error: Error): GatewayError => {
  if (error.cause instanceof GatewayError) return error.cause
  const isTimeout = 'code' in error && TIMEOUT_CODES.has(error.code)
  return new GatewayError(isTimeout ? 'RELAY_TIMEOUT' : 'RELAY_UNREACHABLE', { cause: error.cause ?? error })
}
