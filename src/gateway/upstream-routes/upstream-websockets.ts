import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { type AppTokenVerifier, userDetails } from '../../shared/app-token.js'
import type { GatewayConfig } from '../config.js'
import { GatewayError } from '../errors.js'
import { browserHost } from '../http/client-request.js'
import type { GatewayMetrics } from '../metrics.js'
import { backendRequestHeaders } from '../proxy/request-headers.js'
import { browserResponseHeaders, headersObject } from '../proxy/response-headers.js'
import { appTokenCookie, hasCredentials } from '../session/credentials.js'
import { isWebSocketRequest, type Upstream } from '../upstreams/upstream.js'
import type { Upstreams } from '../upstreams/upstreams.js'
import { LastingConnections, type WebSocketSession } from '../websockets/connections.js'
import { type ProxiedWebSocket, WebSocketProxy, type WebSocketProxyOptions } from '../websockets/web-socket-proxy.js'

export interface UpstreamWebSocketsOptions
  extends Pick<WebSocketProxyOptions, 'upgraded' | 'openReplies' | 'requestEnded' | 'maxMessageBytes'> {
  readonly upstreams: Upstreams
  readonly limits: GatewayConfig['webSockets']
  readonly publicHost: string | null
  readonly tokens: AppTokenVerifier
  readonly metrics: GatewayMetrics
  readonly log: Logger
  /** The provider session of a request; null if it has none. */
  readonly providerSession: (request: FastifyRequest) => Promise<ProviderSessionState | null>
}

/** A provider session as far as WebSockets depend on it. */
export interface ProviderSessionState {
  readonly id: string
  readonly isRevoked: () => boolean
}

/** A handshake takes no longer, even if requests may. */
const MAX_HANDSHAKE_MS = 10_000

/** WebSockets of browsers to the backends of rows. The chain has checked origin, token and role of their handshakes. */
export class UpstreamWebSockets {
  readonly connections: LastingConnections
  readonly #options: UpstreamWebSocketsOptions
  readonly #proxy: WebSocketProxy
  readonly #open = new Map<string, number>()

  constructor(options: UpstreamWebSocketsOptions) {
    const { limits, log, metrics, upstreams } = options
    this.#options = options
    this.connections = new LastingConnections(limits, log, 'backend')
    this.#proxy = new WebSocketProxy({ ...options, connections: this.connections, peer: 'backend' })
    const names = upstreams.rows.filter(({ websocket }) => websocket).map(({ name }) => name)
    const counts = names.map((name) => [name, () => this.#open.get(name) ?? 0] as const)
    metrics.addUpstreamGauge('gateway_websockets', 'Open WebSockets to backends.', Object.fromEntries(counts))
  }

  /** Registers the hook that opens WebSockets in place of forwarding their handshakes. */
  addHooks(scope: FastifyInstance): void {
    scope.addHook('preHandler', async (request, reply) => {
      if (isWebSocketRequest(request) && request.upstream !== null)
        await this.#openFor(request, reply, request.upstream)
    })
  }

  close(): void {
    this.connections.close()
  }

  async #openFor(request: FastifyRequest, reply: FastifyReply, row: Upstream): Promise<void> {
    const session = await this.#sessionOf(request)
    const release = this.connections.admit(reply)
    this.#count(row, 1)
    const webSocket: ProxiedWebSocket = {
      target: this.#targetOf(request, row),
      rejectionHeaders: ({ rawHeaders }) =>
        headersObject(browserResponseHeaders(rawHeaders, row.backend, reply.getHeaders(), hasCredentials(request))),
      session,
      release: () => {
        this.#count(row, -1)
        release()
      }
    }
    try {
      await this.#proxy.open(request, reply, webSocket)
    } catch (error) {
      if (error instanceof GatewayError && error.statusCode >= 500)
        this.#options.metrics.ofBackend(row.name).backendFailed(error.cause)
      throw error
    }
  }

  #count({ name }: Upstream, change: 1 | -1): void {
    this.#open.set(name, (this.#open.get(name) ?? 0) + change)
  }

  #targetOf(request: FastifyRequest, { backend, user }: Upstream): ProxiedWebSocket['target'] {
    const { publicHost, upstreams } = this.#options
    return {
      origin: backend.origin,
      path: backend.pathOf(request.raw.url ?? ''),
      headers: {
        ...headersObject(backendRequestHeaders(request, publicHost, 'none', null, user)),
        // Servers compare it with the origin of the page.
        host: browserHost(request) || new URL(backend.origin).host,
        via: upstreams.via
      },
      timeoutMs: Math.min(backend.timeoutMs, MAX_HANDSHAKE_MS),
      errors: { unreachable: 'BACKEND_UNREACHABLE', timeout: 'BACKEND_TIMEOUT' }
    }
  }

  /** Null for a WebSocket without a verified token. */
  async #sessionOf(request: FastifyRequest): Promise<WebSocketSession | null> {
    const { tokens, providerSession } = this.#options
    const cookie = appTokenCookie(request)
    if (request.auth === null || cookie.kind !== 'token') return null
    const { claims, expiresAtMs } = tokens.verify(cookie.token)
    const provider = await providerSession(request)
    return {
      user: userDetails(claims).id,
      providerSession: provider?.id ?? null,
      issuedAt: typeof claims.iat === 'number' ? claims.iat * 1000 : null,
      expiresAt: expiresAtMs,
      isRevoked: provider?.isRevoked ?? (() => false)
    }
  }
}
