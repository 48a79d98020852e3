import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { AppTokenVerifier } from '../../shared/app-token.js'
import { GatewayError } from '../errors.js'
import { browserHost } from '../http/client-request.js'
import { isClosed } from '../http/response-close.js'
import type { GatewayMetrics } from '../metrics.js'
import { backendRequestHeaders } from '../proxy/request-headers.js'
import { browserResponseHeaders, headersObject } from '../proxy/response-headers.js'
import type { UserRevocations } from '../revocation/user-revocations.js'
import { appTokenCookie, hasCredentials } from '../session/credentials.js'
import { isWebSocketRequest, type Upstream } from '../upstreams/upstream.js'
import type { Upstreams } from '../upstreams/upstreams.js'
import type { ConnectionGroup, WebSocketSession } from '../websockets/connections.js'
import { type ProxiedWebSocket, WebSocketProxy, type WebSocketProxyOptions } from '../websockets/web-socket-proxy.js'

export interface UpstreamWebSocketsOptions
  extends Pick<WebSocketProxyOptions, 'upgraded' | 'connections' | 'openReplies' | 'requestEnded' | 'maxMessageBytes'> {
  readonly upstreams: Upstreams
  /** The limit of all rows together. */
  readonly maxWebSockets: number
  readonly publicHost: string | null
  readonly tokens: AppTokenVerifier
  /** Null if revocation is disabled. */
  readonly revocations: Pick<UserRevocations, 'isRevoked' | 'onChange'> | null
  readonly metrics: GatewayMetrics
  readonly log: Logger
  /** The provider session of a request; null if it has none. */
  readonly providerSession: (request: FastifyRequest) => Promise<ProviderSessionState | null>
}

/** A provider session as far as WebSockets depend on it. */
export interface ProviderSessionState {
  readonly isRevoked: () => boolean
}

/** A handshake takes no longer, even if requests may. */
const MAX_HANDSHAKE_MS = 10_000

/** WebSockets of browsers to the backends of rows. The chain has checked origin, token and role of their handshakes. */
export class UpstreamWebSockets {
  readonly #options: UpstreamWebSocketsOptions
  readonly #proxy: WebSocketProxy
  readonly #open = new Map<string, number>()

  constructor(options: UpstreamWebSocketsOptions) {
    const { connections, metrics, revocations, upstreams } = options
    this.#options = options
    this.#proxy = new WebSocketProxy({ ...options, peer: 'backend' })
    revocations?.onChange(() => connections.endSessions())
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
    this.#options.connections.close()
  }

  async #openFor(request: FastifyRequest, reply: FastifyReply, row: Upstream): Promise<void> {
    const session = await this.#sessionOf(request)
    const release = this.#options.connections.admit(reply, this.#groupOf(row))
    let isOpen = false
    const webSocket: ProxiedWebSocket = {
      target: this.#targetOf(request, row),
      rejectionHeaders: ({ rawHeaders }) =>
        headersObject(browserResponseHeaders(rawHeaders, row.backend, reply.getHeaders(), hasCredentials(request))),
      session,
      opened: () => {
        isOpen = true
        this.#count(row, 1)
      },
      release: () => {
        if (isOpen) this.#count(row, -1)
        release()
      }
    }
    try {
      await this.#proxy.open(request, reply, webSocket)
    } catch (error) {
      if (error instanceof GatewayError && error.statusCode >= 500 && !isClosed(reply.raw))
        this.#options.metrics.ofBackend(row.name).backendFailed(error.cause)
      throw error
    }
  }

  /** One of several rows must not use up the connections of the others. */
  #groupOf({ name, maxWebSockets }: Upstream): ConnectionGroup {
    const { upstreams, maxWebSockets: total } = this.#options
    const isOnly = upstreams.rows.filter(({ websocket }) => websocket).length === 1
    return { name, connections: maxWebSockets ?? (isOnly ? total : Math.ceil(total / 2)) }
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
    const { tokens, revocations, providerSession } = this.#options
    const cookie = appTokenCookie(request)
    if (request.auth === null || cookie.kind !== 'token') return null
    const { token } = cookie
    const verified = tokens.verify(token)
    const provider = await providerSession(request)
    return {
      token,
      expiresAt: verified.expiresAtMs,
      isRevoked: () => (revocations?.isRevoked(token, verified) ?? false) || (provider?.isRevoked() ?? false)
    }
  }
}
