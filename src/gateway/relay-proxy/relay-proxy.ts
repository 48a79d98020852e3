import type { Readable } from 'node:stream'
import httpProxy from '@fastify/http-proxy'
import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Logger } from 'pino'
import { buildConnector, Pool } from 'undici'
import { RELAY_CONNECTION_PREFIX, RELAY_EMULATION_PATH } from '../access.js'
import type { GatewayConfig } from '../config.js'
import { GatewayError } from '../errors.js'
import type { OpenReplies, RequestEnded } from '../http/open-replies.js'
import { foreignPageTest } from '../http/request-origin.js'
import { onceClosed } from '../http/response-close.js'
import type { GatewayMetrics } from '../metrics.js'
import { limitedBody } from '../proxy/body-limit.js'
import type { HandshakeTarget } from '../websockets/backend-handshake.js'
import { LastingConnections } from '../websockets/connections.js'
import type { UpgradedConnections } from '../websockets/upgrades.js'
import { WebSocketProxy } from '../websockets/web-socket-proxy.js'
import { relayHandshakeHeaders, relayRequestHeaders, relayResponseHeaders } from './relay-headers.js'

export interface RelayProxyOptions {
  readonly relay: NonNullable<GatewayConfig['relay']>
  readonly bodyBytes: number
  readonly log: Logger
  readonly metrics: GatewayMetrics
  readonly openReplies: OpenReplies
  readonly requestEnded: RequestEnded
  readonly csrf: GatewayConfig['csrf']
  readonly upgraded: UpgradedConnections
}

const CONNECT_TIMEOUT_MS = 5_000
const HEADERS_TIMEOUT_MS = 10_000

/**
 * Serves the client endpoints of the relay, so that web applications and their realtime connections have one origin: WebSocket,
 * HTTP streaming, server-sent events and emulation. The relay checks origin and token; the gateway also rejects WebSockets of
 * foreign pages.
 */
export const relayProxy = fp<RelayProxyOptions>(
  async (app, options) => {
    const { relay, bodyBytes, log, metrics, csrf, upgraded } = options
    const { origin, pathname } = new URL(relay.url)
    const pathPrefix = pathname.replace(/\/+$/, '')
    const connections = new LastingConnections(relay, log, 'relay')
    const pool = relayPool(origin, relay.idleMs)
    metrics.addGauge('gateway_relay_connections', 'Open connections to the relay.', () => connections.size)
    const webSockets = new WebSocketProxy({ ...options, maxMessageBytes: bodyBytes, connections, peer: 'relay' })

    const isFromForeignPage = foreignPageTest(csrf)
    const openWebSocket = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
      if (isFromForeignPage(request)) throw new GatewayError('ORIGIN_REFUSED')
      await webSockets.open(request, reply, {
        target: handshakeTarget(request, origin, pathPrefix),
        rejectionHeaders: ({ headers }) => relayResponseHeaders(headers),
        // The relay ends the session of its token itself.
        session: null,
        release: connections.admit(reply)
      })
    }

    const proxyOptions = {
      upstream: origin,
      undici: pool,
      disableRequestLogging: true,
      // The parser below limits the body; the parser of the library does not.
      proxyPayloads: false,
      preHandler: async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
        if (upgraded.get(request.raw) !== undefined) await openWebSocket(request, reply)
        else onceClosed(reply.raw, connections.admit(reply))
      },
      replyOptions: {
        // The library declares a request of any kind of server; this one is a FastifyRequest of the gateway.
        rewriteRequestHeaders: (request: unknown) => relayRequestHeaders(request as FastifyRequest),
        rewriteHeaders: relayResponseHeaders,
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
        ...proxyOptions,
        prefix: RELAY_CONNECTION_PREFIX,
        rewritePrefix: `${pathPrefix}${RELAY_CONNECTION_PREFIX}`,
        routes: ['/*'],
        httpMethods: ['GET', 'POST', 'OPTIONS']
      })
      await scope.register(httpProxy, {
        ...proxyOptions,
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

const handshakeTarget = (request: FastifyRequest, origin: string, pathPrefix: string): HandshakeTarget => ({
  origin,
  path: `${pathPrefix}${request.raw.url}`,
  headers: relayHandshakeHeaders(request),
  timeoutMs: HEADERS_TIMEOUT_MS,
  errors: { unreachable: 'RELAY_UNREACHABLE', timeout: 'RELAY_TIMEOUT' }
})

const relayPool = (origin: string, idleMs: number): Pool =>
  new Pool(origin, {
    // Every stream occupies a connection; `LastingConnections` limits them.
    connections: null,
    pipelining: 1,
    headersTimeout: HEADERS_TIMEOUT_MS,
    bodyTimeout: idleMs,
    connect: buildConnector({ timeout: CONNECT_TIMEOUT_MS, rejectUnauthorized: true, allowH2: false })
  })

const TIMEOUT_CODES: ReadonlySet<unknown> = new Set(['FST_REPLY_FROM_GATEWAY_TIMEOUT', 'UND_ERR_CONNECT_TIMEOUT'])

/** Maps an error of the proxy library. The library wraps an error of the request body, such as BODY_TOO_LARGE. */
const toRelayError = (error: Error): GatewayError => {
  if (error.cause instanceof GatewayError) return error.cause
  const isTimeout = 'code' in error && TIMEOUT_CODES.has(error.code)
  return new GatewayError(isTimeout ? 'RELAY_TIMEOUT' : 'RELAY_UNREACHABLE', { cause: error.cause ?? error })
}
