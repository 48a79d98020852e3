import type { FastifyReply } from 'fastify'
import type { Logger } from 'pino'
import { GatewayError } from '../errors.js'
import { addressGroup } from '../http/client-request.js'
import type { WebSocketTunnel } from './tunnel.js'

export interface ConnectionLimits {
  readonly connections: number
  readonly connectionsPerAddress: number
  /** A connection that is silent for so long is closed. A WebSocket is pinged before. */
  readonly idleMs: number
}

/** The session that a WebSocket was opened with. */
export interface WebSocketSession {
  readonly token: string
  /** In milliseconds since 1970. */
  readonly expiresAt: number
  /** Called every second, and after each revocation. */
  readonly isRevoked: () => boolean
}

/** Connections that have a limit of their own besides the total, such as those to one backend. */
export interface ConnectionGroup {
  readonly name: string
  readonly connections: number
}

const CHECKS_PER_IDLE_TIME = 3
const SESSION_CHECK_MS = 1_000

/** The relay's own code for a shutdown: clients reconnect. */
const SHUTDOWN = [3001, 'shutdown'] as const

/** Clients sign in again before they reconnect. */
const SESSION_ENDED = [4401, 'session ended'] as const

/** The connections of browsers to the relay or to backends through this gateway that last: WebSockets and streams. */
export class LastingConnections {
  readonly #limits: ConnectionLimits
  readonly #log: Logger
  /** Beside `browser`, in the log. */
  readonly #peer: string
  readonly #open = new Set<FastifyReply>()
  /** The open connections of each address and each group. */
  readonly #counts = new Map<string, number>()
  readonly #tunnels = new Map<WebSocketTunnel, WebSocketSession | null>()
  readonly #timers: readonly NodeJS.Timeout[]
  #isClosing = false

  constructor(limits: ConnectionLimits, log: Logger, peer: string) {
    this.#limits = limits
    this.#log = log
    this.#peer = peer
    this.#timers = [
      setInterval(() => this.#closeIdle(), limits.idleMs / CHECKS_PER_IDLE_TIME).unref(),
      setInterval(() => this.endSessions(), SESSION_CHECK_MS).unref()
    ]
  }

  get size(): number {
    return this.#open.size
  }

  /** Counts a connection until the returned function is called. Throws if a limit is reached. */
  admit(reply: FastifyReply, group: ConnectionGroup | null = null): () => void {
    const { connections, connectionsPerAddress } = this.#limits
    const limits: [key: string, limit: number][] = [
      [`address ${addressGroup(reply.request.clientAddress)}`, connectionsPerAddress]
    ]
    if (group !== null) limits.push([`group ${group.name}`, group.connections])
    const isFull = ([key, limit]: (typeof limits)[number]): boolean => (this.#counts.get(key) ?? 0) >= limit
    if (this.#isClosing || this.#open.size >= connections || limits.some(isFull)) {
      throw new GatewayError('OVERLOADED', { headers: { 'retry-after': '1', connection: 'close' } })
    }
    this.#open.add(reply)
    for (const [key] of limits) this.#count(key, 1)
    return () => {
      this.#open.delete(reply)
      for (const [key] of limits) this.#count(key, -1)
    }
  }

  /** Pings both sides of a WebSocket while it is silent, and closes it if a side does not respond or its session ends. */
  watch(tunnel: WebSocketTunnel, session: WebSocketSession | null): void {
    this.#tunnels.set(tunnel, session)
    tunnel.onceClosed(() => this.#tunnels.delete(tunnel))
    if (this.#isClosing) tunnel.close(...SHUTDOWN)
  }

  /** Closes the WebSockets of sessions that have expired or were revoked, and of those with a token that has signed out. */
  endSessions(signedOut: string | null = null): void {
    const now = Date.now()
    for (const [tunnel, session] of this.#tunnels) {
      if (session === null || tunnel.isClosing) continue
      const { token, expiresAt, isRevoked } = session
      if (token === signedOut || expiresAt <= now || isRevoked()) tunnel.close(...SESSION_ENDED)
    }
  }

  /** For shutdown: closes all WebSockets and streams. Clients reconnect to another gateway. */
  close(): void {
    this.#isClosing = true
    for (const timer of this.#timers) clearInterval(timer)
    for (const tunnel of this.#tunnels.keys()) tunnel.close(...SHUTDOWN)
    for (const { raw } of this.#open) if (raw.headersSent) raw.destroy()
  }

  #count(key: string, change: 1 | -1): void {
    const count = (this.#counts.get(key) ?? 0) + change
    if (count > 0) this.#counts.set(key, count)
    else this.#counts.delete(key)
  }

  #closeIdle(): void {
    for (const tunnel of this.#tunnels.keys()) {
      const { browser, backend, isClosing } = tunnel
      if (isClosing) continue
      const silent = [browser, backend].find((side) => !side.checkAlive(() => tunnel.ping(side)))
      if (silent === undefined) continue
      this.#log.info({ side: silent === browser ? 'browser' : this.#peer }, 'silent WebSocket closed')
      tunnel.destroy()
    }
  }
}
