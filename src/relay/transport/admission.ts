import type { IncomingMessage } from 'node:http'
import { AddressSet, normalAddress } from '../../shared/address.js'
import type { RelayConfig } from '../config/config.js'
import { after, type MaybePromise } from '../core/broker.js'
import type { ClientOptions } from '../core/options.js'
import type { Rejections } from './rejections.js'

/** Whether a page of this origin may connect to this host. Both as the headers say it. */
export type OriginCheck = (origin: string | undefined, host: string | undefined) => boolean

/**
 * Browsers always say where a page is from; programs need not. Without a list only pages of the relay's own host may
 * connect. Entries are lower-case origins, `https://*.example.com` for one or more labels, or `*` for all.
 */
export const originCheck = (allowed: readonly string[]): OriginCheck => {
  if (allowed.includes('*')) return () => true
  const exact = new Set(allowed)
  const patterns = allowed.filter((entry) => entry.includes('*')).map(patternTest)
  return (origin, host) => {
    if (origin === undefined) return true
    const lower = origin.toLowerCase()
    if (allowed.length === 0) return isSameHost(lower, host)
    return exact.has(lower) || patterns.some((test) => test(lower))
  }
}

const LABELS = /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/

const patternTest = (pattern: string): ((origin: string) => boolean) => {
  const [before = '', after = ''] = pattern.split('*')
  return (origin) =>
    origin.length > before.length + after.length &&
    origin.startsWith(before) &&
    origin.endsWith(after) &&
    LABELS.test(origin.slice(before.length, origin.length - after.length))
}

const isSameHost = (origin: string, host: string | undefined): boolean => {
  if (host === undefined || !/^https?:\/\//.test(origin) || !URL.canParse(origin)) return false
  const url = new URL(origin)
  // The Host header may name the scheme's own port; an origin never does.
  return url.host === host.toLowerCase() || `${url.host}:${url.protocol === 'https:' ? 443 : 80}` === host.toLowerCase()
}

/** Whose request this is: the other end of the socket, or whom a trusted proxy names. */
export type ClientAddress = (request: IncomingMessage) => string

export const clientAddress = (trustedProxies: readonly string[]): ClientAddress => {
  const trusted = new AddressSet(trustedProxies)
  return (request) => {
    const peer = normalAddress(request.socket.remoteAddress ?? '') ?? ''
    const forwarded = request.headers['x-forwarded-for']
    if (trustedProxies.length === 0 || forwarded === undefined || !trusted.has(peer)) return peer
    // From the last, which our own proxy wrote, back to the first that is not a proxy of ours.
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
  connectionRefused(reason: 'origin' | LimitReached): void
}

/** Who has come in, and what to call when they have gone. */
export interface Admitted {
  readonly address: string
  release(): void
}

const REFUSALS: Readonly<Record<LimitReached, number>> = { limit: 503, rate: 503, address: 429 }

/** Decides who may connect, for all transports alike: where the page is from, and how many there are already. */
export class ClientAdmission {
  readonly #admission: ConnectionCounter
  readonly #metrics: AdmissionMetrics
  readonly #rejections: Rejections
  #originCheck: OriginCheck
  #addressOf: ClientAddress
  #limits: ClientOptions
  #isClosed = false

  constructor(config: RelayConfig, admission: ConnectionCounter, metrics: AdmissionMetrics, rejections: Rejections) {
    this.#metrics = metrics
    this.#rejections = rejections
    this.#admission = admission
    this.#originCheck = originCheck(config.allowedOrigins)
    this.#addressOf = clientAddress(config.trustedProxies)
    this.#limits = config.client
  }

  configure(config: RelayConfig): void {
    this.#originCheck = originCheck(config.allowedOrigins)
    this.#addressOf = clientAddress(config.trustedProxies)
    this.#limits = config.client
  }

  /** Nobody else comes in. */
  close(): void {
    this.#isClosed = true
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  allowsOrigin(request: IncomingMessage): boolean {
    const { origin, host } = request.headers
    if (this.#originCheck(origin, host)) return true
    this.#metrics.connectionRefused('origin')
    this.#rejections.origin(request, this.#addressOf(request))
    return false
  }

  addressOf(request: IncomingMessage): string {
    return this.#addressOf(request)
  }

  /** The status to refuse with, or who came in. The page's origin is checked too. */
  admit(request: IncomingMessage): MaybePromise<number | Admitted> {
    if (!this.allowsOrigin(request)) return 403
    const address = this.#addressOf(request)
    if (this.#isClosed) return this.#refuse('limit')
    return after(this.#admission.acquire(address, this.#limits), (refusal) => {
      if (refusal !== null) return this.#refuse(refusal)
      if (!this.#isClosed) return { address, release: () => this.#admission.release(address) }
      // Closed while the admission was asked.
      this.#admission.release(address)
      return this.#refuse('limit')
    })
  }

  #refuse(refusal: LimitReached): number {
    this.#metrics.connectionRefused(refusal)
    return REFUSALS[refusal]
  }
}

/** Which limit a connection was refused for, before anything was set up for it. */
export type LimitReached = 'limit' | 'rate' | 'address'

/** 0 is no limit. */
export type ConnectionLimits = Pick<ClientOptions, 'connectionLimit' | 'connectionsPerAddress' | 'connectionRateLimit'>

/** Counts connections: in all, by address, and how fast new ones come. */
export interface ConnectionCounter {
  /** Null for those that may come in; they must `leave` when they go. */
  acquire(address: string, limits: ConnectionLimits): MaybePromise<LimitReached | null>
  release(address: string): void
}

/** The counts themselves. */
export class LocalConnectionCounter implements ConnectionCounter {
  readonly #monotonicMs: () => number
  readonly #byAddress = new Map<string, number>()
  #total = 0
  #tokens = 0
  // The bucket is full at first.
  #filledAt = Number.NEGATIVE_INFINITY

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs
  }

  acquire(address: string, limits: ConnectionLimits): LimitReached | null {
    const { connectionLimit, connectionsPerAddress, connectionRateLimit } = limits
    if (connectionLimit > 0 && this.#total >= connectionLimit) return 'limit'
    const ofAddress = this.#byAddress.get(address) ?? 0
    if (connectionsPerAddress > 0 && ofAddress >= connectionsPerAddress) return 'address'
    if (connectionRateLimit > 0 && !this.#takeToken(connectionRateLimit)) return 'rate'
    this.count(address)
    return null
  }

  /** One that is let in whatever the limits. */
  count(address: string): void {
    this.#total++
    this.#byAddress.set(address, (this.#byAddress.get(address) ?? 0) + 1)
  }

  release(address: string): void {
    this.#total--
    const ofAddress = (this.#byAddress.get(address) ?? 1) - 1
    if (ofAddress > 0) this.#byAddress.set(address, ofAddress)
    else this.#byAddress.delete(address)
  }

  /** A bucket that holds one second's worth, and fills as the second goes by. */
  #takeToken(perSecond: number): boolean {
    const nowMs = this.#monotonicMs()
    this.#tokens = Math.min(perSecond, this.#tokens + ((nowMs - this.#filledAt) / 1000) * perSecond)
    this.#filledAt = nowMs
    if (this.#tokens < 1) return false
    this.#tokens--
    return true
  }
}

/**
 * The relay does not speak Centrifugo's protobuf protocol: such a client receives 400 before anything is read. Clients ask
 * for it in the query, as a WebSocket subprotocol, or over HTTP with the type of the body.
 */
export const asksForProtobuf = ({ url = '', headers }: IncomingMessage): boolean => {
  if (headers['content-type']?.toLowerCase().startsWith('application/octet-stream')) return true
  if (url.includes('?') && /[?&](?:format|cf_protocol)=protobuf(?:&|$)/.test(url)) return true
  const protocols = headers['sec-websocket-protocol']
  if (protocols === undefined) return false
  const offered = protocols.split(',').map((name) => name.trim())
  return offered.includes('centrifuge-protobuf') && !offered.includes('centrifuge-json')
}
