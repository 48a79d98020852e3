import type { IncomingMessage } from 'node:http'
import { AddressSet, normalAddress } from '../../shared/ip-address.js'
import { isLoopbackOrigin } from '../../shared/loopback-origin.js'
import type { RelayConfig } from '../config/config.js'
import { isOriginGlob, originTest } from '../config/origins.js'
import { after, type MaybePromise } from '../core/maybe-promise.js'
import type { ClientOptions } from '../core/options.js'
import type { Rejections } from './rejections.js'

/** Decides by the `Origin` and `Host` headers whether a page may connect. */
export type OriginCheck = (origin: string | undefined, host: string | undefined) => boolean

/**
 * Browsers always send an `Origin`; a client without one is allowed. With an empty list only pages of the relay's own host
 * may connect. Entries are lower-case origins, globs, or `*` for all. In development, loopback origins may connect too.
 */
export const originCheck = (allowed: readonly string[], allowsLoopback = false): OriginCheck => {
  if (allowed.includes('*')) return () => true
  const exact = new Set(allowed)
  const globs = allowed.filter(isOriginGlob).map(originTest)
  return (origin, host) => {
    if (origin === undefined) return true
    const lower = origin.toLowerCase()
    if (allowsLoopback && isLoopbackOrigin(lower)) return true
    if (allowed.length === 0) return isSameHost(lower, host)
    return exact.has(lower) || globs.some((test) => test(lower))
  }
}

const isSameHost = (origin: string, host: string | undefined): boolean => {
  if (host === undefined || !/^https?:\/\//.test(origin) || !URL.canParse(origin)) return false
  const url = new URL(origin)
  // The Host header may contain the default port of the scheme; an origin never does.
  return url.host === host.toLowerCase() || `${url.host}:${url.protocol === 'https:' ? 443 : 80}` === host.toLowerCase()
}

/** The client's address: the peer of the socket, or the address that a trusted proxy forwards. */
export type ClientAddress = (request: IncomingMessage) => string

const clientAddressReader = (trustedProxies: readonly string[]): ClientAddress => {
  const trusted = new AddressSet(trustedProxies)
  return (request) => {
    const peer = normalAddress(request.socket.remoteAddress ?? '') ?? ''
    const forwarded = request.headers['x-forwarded-for']
    if (trustedProxies.length === 0 || forwarded === undefined || !trusted.has(peer)) return peer
    // Starts with the last entry, written by our own proxy, and stops at the first untrusted address.
    const chain = String(forwarded).split(',').reverse()
    let client = peer
    for (const part of chain) {
      const address = normalAddress(part)
      if (address === null) return client
      client = address
      if (!trusted.has(address)) return client
    }
    return client
  }
}

export interface AdmissionMetrics {
  connectionRejected(reason: 'origin' | RejectedBy): void
}

/** An admitted connection; `release` must be called when it closes. */
export interface Admitted {
  readonly address: string
  release(): void
}

/** Why a connection of an allowed origin is rejected. */
type RejectedBy = LimitReached | 'shutdown'

const STATUSES: Readonly<Record<RejectedBy, number>> = { limit: 503, rate: 503, address: 429, shutdown: 503 }

/** For operators. */
const limitText = (limit: LimitReached, limits: ConnectionLimits): string => {
  if (limit === 'limit') return `${limits.connectionLimit} connections`
  if (limit === 'rate') return `${limits.connectionRateLimit} new connections per second`
  return `${limits.connectionsPerAddress} connections of an address`
}

/** Admits connections of all transports: checks the origin and the connection limits. */
export class ClientAdmission {
  readonly #counter: ConnectionCounter
  readonly #metrics: AdmissionMetrics
  readonly #rejections: Rejections
  #originCheck: OriginCheck
  #addressOf: ClientAddress
  #limits: ClientOptions
  #isClosed = false

  constructor(config: RelayConfig, counter: ConnectionCounter, metrics: AdmissionMetrics, rejections: Rejections) {
    this.#metrics = metrics
    this.#rejections = rejections
    this.#counter = counter
    this.#originCheck = originCheck(config.allowedOrigins, config.allowsLoopback)
    this.#addressOf = clientAddressReader(config.trustedProxies)
    this.#limits = config.client
  }

  configure(config: RelayConfig): void {
    this.#originCheck = originCheck(config.allowedOrigins, config.allowsLoopback)
    this.#addressOf = clientAddressReader(config.trustedProxies)
    this.#limits = config.client
  }

  /** Rejects all further connections. */
  close(): void {
    this.#isClosed = true
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  allowsOrigin(request: IncomingMessage): boolean {
    const { origin, host } = request.headers
    if (this.#originCheck(origin, host)) return true
    this.#metrics.connectionRejected('origin')
    this.#rejections.origin(request, this.#addressOf(request))
    return false
  }

  addressOf(request: IncomingMessage): string {
    return this.#addressOf(request)
  }

  /** Returns the HTTP status of a rejection, or the admitted connection. Checks the origin, too. */
  admit(request: IncomingMessage): MaybePromise<number | Admitted> {
    if (!this.allowsOrigin(request)) return 403
    const address = this.#addressOf(request)
    if (this.#isClosed) return this.#reject('shutdown')
    return after(this.#counter.acquire(address, this.#limits), (limit) => this.#admitted(address, limit))
  }

  #admitted(address: string, limit: LimitReached | null): number | Admitted {
    if (limit !== null) {
      this.#rejections.limit(limitText(limit, this.#limits), `address ${address}`)
      return this.#reject(limit)
    }
    if (!this.#isClosed) return { address, release: () => this.#counter.release(address) }
    // The relay started to shut down meanwhile.
    this.#counter.release(address)
    return this.#reject('shutdown')
  }

  #reject(reason: RejectedBy): number {
    this.#metrics.connectionRejected(reason)
    return STATUSES[reason]
  }
}

/** The limit that a rejected connection exceeds. */
export type LimitReached = 'limit' | 'rate' | 'address'

/** 0 is no limit. */
export type ConnectionLimits = Pick<ClientOptions, 'connectionLimit' | 'connectionsPerAddress' | 'connectionRateLimit'>

/** Counts connections in total, per address and per second. */
export interface ConnectionCounter {
  /** Returns null for an admitted connection, which must be released when it closes. */
  acquire(address: string, limits: ConnectionLimits): MaybePromise<LimitReached | null>
  release(address: string): void
}

/** Counts the connections of this process. */
export class LocalConnectionCounter implements ConnectionCounter {
  readonly #monotonicMs: () => number
  readonly #byAddress = new Map<string, number>()
  #total = 0
  #tokens = 0
  // Makes the token bucket full at start.
  #filledAt = Number.NEGATIVE_INFINITY

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs
  }

  acquire(address: string, limits: ConnectionLimits): LimitReached | null {
    const { connectionLimit, connectionsPerAddress, connectionRateLimit } = limits
    if (connectionLimit > 0 && this.#total >= connectionLimit) return 'limit'
    const fromAddress = this.#byAddress.get(address) ?? 0
    if (connectionsPerAddress > 0 && fromAddress >= connectionsPerAddress) return 'address'
    if (connectionRateLimit > 0 && !this.#takeToken(connectionRateLimit)) return 'rate'
    this.count(address)
    return null
  }

  /** Counts a connection without checking the limits. */
  count(address: string): void {
    this.#total++
    this.#byAddress.set(address, (this.#byAddress.get(address) ?? 0) + 1)
  }

  release(address: string): void {
    this.#total--
    const fromAddress = (this.#byAddress.get(address) ?? 1) - 1
    if (fromAddress > 0) this.#byAddress.set(address, fromAddress)
    else this.#byAddress.delete(address)
  }

  /** A token bucket with the capacity of one second. */
  #takeToken(perSecond: number): boolean {
    const nowMs = this.#monotonicMs()
    this.#tokens = Math.min(perSecond, this.#tokens + ((nowMs - this.#filledAt) / 1000) * perSecond)
    this.#filledAt = nowMs
    if (this.#tokens < 1) return false
    this.#tokens--
    return true
  }
}

const BEARER = /^bearer +(\S+)$/i

/** The token of an `Authorization: Bearer` header; '' without one. */
export const bearerToken = ({ headers }: IncomingMessage): string => BEARER.exec(headers.authorization ?? '')?.[1] ?? ''

/** The connect command or request in the query; '' without one. */
export const connectInQuery = ({ url = '' }: IncomingMessage): string => {
  const query = url.indexOf('?')
  return query === -1 ? '' : (new URLSearchParams(url.slice(query + 1)).get('cf_connect') ?? '')
}

/** Whether a URL requests the protobuf form of the protocol. */
export const requestsProtobuf = (url: string): boolean => /[?&](?:format|cf_protocol)=protobuf(?:&|$)/.test(url)

/** Whether the body of a request is protobuf. */
export const hasProtobufBody = ({ headers }: IncomingMessage): boolean =>
  headers['content-type']?.toLowerCase().startsWith('application/octet-stream') === true
