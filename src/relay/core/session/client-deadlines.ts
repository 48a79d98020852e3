import { type Expiry, hasExpired, type Moment, NEVER } from '../clocks.js'
import {
  DISCONNECT_CONNECTION_EXPIRED,
  DISCONNECT_NO_PONG,
  DISCONNECT_SLOW,
  DISCONNECT_STALE,
  UNSUBSCRIBE_EXPIRED
} from '../codes.js'
import { count } from '../core-metrics.js'
import type { Client } from './client.js'
import { refreshConnectionByProxy, refreshSubscriptionByProxy } from './proxy-refresh.js'

const NOT_SCHEDULED = Number.POSITIVE_INFINITY

/** The backend is asked at once; a client is given time to refresh. */
const graceOf = ({ isRefreshedByBackend }: Expiry, delayMs: number): number => (isRefreshedByBackend ? 0 : delayMs)

/**
 * The pings and time limits of one client: it is closed if it does not connect in time, does not respond to a ping, or if
 * its connection expires. `Relay.tick` checks all clients, which costs less than a timer for each.
 */
export class ClientDeadlines {
  readonly #client: Client
  readonly #openedAt: number
  #pingAt = NOT_SCHEDULED
  /** The interval that was announced to the client; it does not change with the configuration. */
  #pingIntervalMs = 0
  #pongDueAt = NOT_SCHEDULED
  /** Drain count of the outbox at the last ping. */
  #drainCountAtPing = 0

  constructor(client: Client) {
    this.#client = client
    this.#openedAt = client.context.monotonicMs()
    this.schedule()
  }

  /** Starts the pings. */
  goLive(): void {
    const { clientOptions, monotonicMs, random } = this.#client.context
    this.#pingIntervalMs = clientOptions.pingIntervalMs
    // Spread over half an interval, because after a restart all clients connect at once.
    this.#pingAt = monotonicMs() + clientOptions.pingIntervalMs * (0.5 + random() / 2)
    this.schedule()
  }

  /** Called when an expiry or the client options have changed. */
  schedule(): void {
    const { context, state, expiry, subscriptions, loadingDeadlineMs } = this.#client
    const { expiredCloseDelayMs, expiredSubCloseDelayMs } = context.clientOptions
    if (state !== 'live') {
      this.#checkAt(this.#openedAt + context.clientOptions.staleCloseDelayMs, NOT_SCHEDULED)
      return
    }
    const graceMs = graceOf(expiry, expiredCloseDelayMs)
    let at = Math.min(this.#pingAt, this.#pongDueAt, loadingDeadlineMs, expiry.monotonicMs + graceMs)
    let atWall = expiry.wallMs + graceMs
    for (const { expiry: subscriptionExpiry } of subscriptions.values()) {
      if (subscriptionExpiry === NEVER) continue
      const subscriptionGraceMs = graceOf(subscriptionExpiry, expiredSubCloseDelayMs)
      at = Math.min(at, subscriptionExpiry.monotonicMs + subscriptionGraceMs)
      atWall = Math.min(atWall, subscriptionExpiry.wallMs + subscriptionGraceMs)
    }
    this.#checkAt(at, atWall)
  }

  /** `wallMs`: an expiry has also come when the wall clock reaches it. */
  #checkAt(monotonicMs: number, wallMs: number): void {
    this.#client.context.clients.setNextCheck(this.#client, { monotonicMs, wallMs })
  }

  /** Processes a pong. Returns false if no ping was sent. */
  pong(): boolean {
    if (this.#pongDueAt === NOT_SCHEDULED) return false
    const { context, transport } = this.#client
    const { clientOptions, monotonicMs, metrics } = context
    metrics.pongReceived(transport.name, (monotonicMs() - this.#pongDueAt + clientOptions.pongTimeoutMs) / 1000)
    this.#pongDueAt = NOT_SCHEDULED
    this.schedule()
    return true
  }

  /** Sends a ping, refreshes what has expired, or closes the client. Called when it is due. */
  check(now: Moment): void {
    const client = this.#client
    if (client.state !== 'live') {
      client.close(DISCONNECT_STALE)
      return
    }
    if (now.monotonicMs >= this.#pongDueAt && !this.#extendPongDeadline(now.monotonicMs)) {
      client.close(DISCONNECT_NO_PONG)
      return
    }
    if (now.monotonicMs >= client.loadingDeadlineMs) {
      client.close(DISCONNECT_SLOW)
      return
    }
    const { expiry, context } = client
    if (hasExpired(expiry, graceOf(expiry, context.clientOptions.expiredCloseDelayMs), now)) {
      if (expiry.isRefreshedByBackend) refreshConnectionByProxy(client)
      else client.close(DISCONNECT_CONNECTION_EXPIRED)
    }
    this.#checkSubscriptions(now)
    if (client.isClosed) return
    if (now.monotonicMs >= this.#pingAt) this.#ping(now.monotonicMs)
    this.schedule()
  }

  /**
   * Extends the pong timeout while reading is paused, because the pong may be among the unread frames. A client that also
   * accepts nothing from the network is not given more time.
   */
  #extendPongDeadline(nowMs: number): boolean {
    const { outbox, context, isReadingPaused } = this.#client
    const { isBehind, drainCount } = outbox
    const isReading = !isBehind || drainCount !== this.#drainCountAtPing
    this.#drainCountAtPing = drainCount
    this.#pongDueAt = nowMs + context.clientOptions.pongTimeoutMs
    return isReadingPaused && isReading
  }

  #ping(nowMs: number): void {
    const { context, transport, outbox } = this.#client
    const { clientOptions, metrics } = context
    this.#pingAt = nowMs + this.#pingIntervalMs
    // A pending timeout continues: it may be longer than the interval and would otherwise restart with every ping.
    if (this.#pongDueAt === NOT_SCHEDULED && !transport.isUnidirectional)
      this.#pongDueAt = nowMs + clientOptions.pongTimeoutMs
    this.#drainCountAtPing = outbox.drainCount
    count(metrics.sent(transport.name, 'server_ping', ''), transport.pingBytes.length)
    outbox.send(transport.pingBytes)
  }

  #checkSubscriptions(now: Moment): void {
    const client = this.#client
    const { expiredSubCloseDelayMs } = client.context.clientOptions
    for (const subscription of [...client.subscriptions.values()]) {
      const { expiry } = subscription
      if (!hasExpired(expiry, graceOf(expiry, expiredSubCloseDelayMs), now)) continue
      if (expiry.isRefreshedByBackend) refreshSubscriptionByProxy(client, subscription)
      else client.endSubscription(subscription, UNSUBSCRIBE_EXPIRED)
      if (client.isClosed) return
    }
  }
}
