import type { Moment } from './clocks.js'
import { hasExpired, NEVER } from './clocks.js'
import type { Disconnect } from './codes.js'
import {
  DISCONNECT_CONNECTION_EXPIRED,
  DISCONNECT_INSUFFICIENT_STATE,
  DISCONNECT_NO_PONG,
  DISCONNECT_NORMAL,
  DISCONNECT_SLOW,
  DISCONNECT_STALE,
  DISCONNECT_SUBSCRIPTION_EXPIRED,
  INTERNAL_ERROR,
  UNSUBSCRIBE_EXPIRED,
  type Unsubscribe
} from './codes.js'
import { count, type FrameType, type Traffic } from './metrics.js'
import { Outbox, type Reader, type Transport } from './outbox.js'
import { clientInfoText, disconnectPush, type Method, unsubscribePush } from './protocol.js'
import type { RelayContext } from './relay.js'
import type { Subscriber, Subscription } from './subscription.js'
import { removeSubscription } from './subscription.js'
import { uncountConnection } from './user-connections.js'

/** A sink with what only connections ask of it. */
export interface ClientTransport extends Transport {
  /** Whose connection it is, as the edge sees it. */
  readonly address: string
  /** Made once for all clients of the transport. */
  readonly pingBytes: Buffer
  /** The pings are the transport's own, and the protocol has none. */
  readonly pingsItself: boolean
  /** Its client cannot answer over it, and needs the name of a session to do so elsewhere. */
  readonly isEmulated: boolean
  /** Reads nothing more from the client until `resume`, where the transport can do that. */
  pause(): void
  resume(): void
  /** Ends the transport, and says why where it can; what was written before still goes out. */
  close(reason: Disconnect): void
}

export type ClientState = 'new' | 'connecting' | 'live' | 'refused' | 'ended'

const NO_TIME = Number.POSITIVE_INFINITY

/** Replies are joined up to this size. */
const JOINED_REPLIES_BYTES = 64 * 1024
/** What a reply has beside its publications: id, fields, the header of its frame. */
const REPLY_OVERHEAD_BYTES = 1024

/** One client's life: who it is, where it listens, and when it must be looked at again. */
export class Client implements Subscriber, Reader {
  readonly relay: RelayContext
  readonly transport: ClientTransport
  readonly outbox: Outbox
  id = ''
  user = ''
  /** JSON text of what its token says about it. */
  info: string | null = null
  name = ''
  version = ''
  state: ClientState = 'new'
  /** When it came, in milliseconds since 1970. */
  readonly since: number
  registryIndex = -1
  /** Both null for a transport that the client can write to itself. */
  session: string | null = null
  commands: { receive(message: string): void } | null = null
  /** Where the reply to the present command is counted. */
  answering: Traffic | null = null
  /** When its token runs out. */
  expiry: Moment = NEVER
  /** When it must be looked at next, on the monotonic clock. */
  wakeAt: number
  /** The same on the wall clock, for expiries only. */
  wakeAtWall = NO_TIME
  /** It takes one of the connections that its user may have. */
  isUserCounted = false
  /** Which channels its token put it on. */
  tokenChannels: string | null = null
  /** Called once, when the client has taken all that was written to it. */
  onCaughtUp: (() => void) | null = null

  #subscriptions: Map<string, Subscription> | null = null
  /** On the monotonic clock. */
  readonly #openedAt: number
  #pingAt = NO_TIME
  /** As its client was told. */
  #pingIntervalMs = 0
  #pongDueAt = NO_TIME
  #replies: string[] | null = null
  #heldBytes = 0
  #isReadingPaused = false
  /** Of the outbox, when the last pong was asked for. */
  #drainsAtPing = 0

  constructor(context: RelayContext, transport: ClientTransport) {
    const { clientOptions: client, nowMs, monotonicMs, clients } = context
    this.relay = context
    this.transport = transport
    this.outbox = new Outbox(transport, this, client.queueMaxBytes)
    this.since = nowMs()
    this.#openedAt = monotonicMs()
    this.wakeAt = this.#staleAt
    clients.add(this)
  }

  /** Applies options that the operator has changed. */
  configure(): void {
    this.outbox.maxBytes = this.relay.clientOptions.queueMaxBytes
    if (this.state === 'live') this.scheduleWake()
    else this.wakeAt = this.#staleAt
  }

  get #staleAt(): number {
    const { staleCloseDelayMs } = this.relay.clientOptions
    return staleCloseDelayMs > 0 ? this.#openedAt + staleCloseDelayMs : NO_TIME
  }

  get subscriptions(): ReadonlyMap<string, Subscription> {
    return this.#subscriptions ?? NO_SUBSCRIPTIONS
  }

  get isClosed(): boolean {
    return this.state === 'ended'
  }

  addSubscription(subscription: Subscription): void {
    this.#subscriptions ??= new Map()
    this.#subscriptions.set(subscription.channel.name, subscription)
  }

  /** What `info` and `user` say, for pushes to others. */
  describe(channelInfo: string | null): string {
    return clientInfoText(this.user, this.id, this.info, channelInfo)
  }

  /** Replies to the commands of one frame leave in one frame. */
  holdReplies(): void {
    this.#replies = []
  }

  sendReplies(): void {
    const replies = this.#replies
    this.#replies = null
    this.#heldBytes = 0
    if (replies !== null && replies.length > 0) this.#write(replies.join('\n'))
  }

  /** Sends what is held now, and goes on holding. */
  flushReplies(): void {
    if (this.#replies === null || this.#replies.length === 0) return
    this.sendReplies()
    this.holdReplies()
  }

  reply(text: string): void {
    if (this.answering !== null) count(this.answering, text.length)
    if (this.#replies === null) {
      this.#write(text)
      return
    }
    const bytes = Buffer.byteLength(text)
    if (this.#heldBytes + bytes > Math.min(JOINED_REPLIES_BYTES, this.outbox.maxBytes)) this.flushReplies()
    this.#replies.push(text)
    this.#heldBytes += bytes
  }

  /** How large the next reply may be, so that what waits for the client stays within `queue_max_size`. */
  get replyBytesLeft(): number {
    return Math.max(0, this.outbox.maxBytes - this.outbox.unsentBytes - this.#heldBytes - REPLY_OVERHEAD_BYTES)
  }

  /** Stops reading from the client, until the commands that wait have been run. */
  pauseReading(): void {
    if (this.#isReadingPaused) return
    this.#isReadingPaused = true
    this.transport.pause()
  }

  resumeReading(): void {
    if (!this.#isReadingPaused) return
    this.#isReadingPaused = false
    this.transport.resume()
  }

  /** Runs something for this connection. An unexpected error ends this connection and nothing else. */
  contain(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.fail(error)
    }
  }

  /** An error that nobody expected: it is logged and counted, and the client may come back. Never throws. */
  fail(error: unknown, method: Method | null = null): void {
    const { log, metrics } = this.relay
    metrics.unexpectedError('connection')
    log.error({ err: error, client: this.id, method }, 'internal error in a connection')
    this.close(INTERNAL_ERROR)
  }

  /** Behind the replies that are held: a client must not hear of a channel before it is told that it is on it. */
  push(text: string, frameType: FrameType, namespace: string): void {
    count(this.relay.metrics.sent(this.transport.name, frameType, namespace), text.length)
    this.flushReplies()
    this.#write(text)
  }

  /** What other clients and this one were to get before now is on its way. */
  settle(): void {
    this.flushReplies()
    this.relay.hub.flush()
  }

  goLive(): void {
    const { clientOptions: client, monotonicMs, random } = this.relay
    this.state = 'live'
    this.#pingIntervalMs = client.pingIntervalMs
    if (client.pingIntervalMs > 0) {
      // Spread, because all clients of a relay that has just started connect at once.
      this.#pingAt = monotonicMs() + client.pingIntervalMs * (0.5 + random() / 2)
    }
    this.scheduleWake()
  }

  scheduleWake(): void {
    const { clientOptions: client } = this.relay
    let at = Math.min(this.#pingAt, this.#pongDueAt, this.expiry.monotonicMs + client.expiredCloseDelayMs)
    let atWall = this.expiry.wallMs + client.expiredCloseDelayMs
    for (const { expiry } of this.subscriptions.values()) {
      if (expiry === NEVER) continue
      at = Math.min(at, expiry.monotonicMs + client.expiredSubCloseDelayMs)
      atWall = Math.min(atWall, expiry.wallMs + client.expiredSubCloseDelayMs)
    }
    this.wakeAt = at
    this.wakeAtWall = atWall
  }

  /** False where nobody had pinged. */
  pong(): boolean {
    if (this.#pongDueAt === NO_TIME) return false
    const { clientOptions: client, monotonicMs, metrics } = this.relay
    metrics.pongReceived(this.transport.name, (monotonicMs() - this.#pongDueAt + client.pongTimeoutMs) / 1000)
    this.#pongDueAt = NO_TIME
    this.scheduleWake()
    return true
  }

  /** Called when `wakeAt` or `wakeAtWall` has come. */
  wake(now: Moment): void {
    const { clientOptions: client } = this.relay
    if (this.state !== 'live') {
      this.close(DISCONNECT_STALE)
      return
    }
    if (now.monotonicMs >= this.#pongDueAt && !this.#mayPongLater(now.monotonicMs)) {
      this.close(DISCONNECT_NO_PONG)
      return
    }
    if (hasExpired(this.expiry, client.expiredCloseDelayMs, now)) {
      this.close(DISCONNECT_CONNECTION_EXPIRED)
      return
    }
    this.#endExpiredSubscriptions(now)
    if (this.isClosed) return
    if (now.monotonicMs >= this.#pingAt) this.#ping(now.monotonicMs)
    this.scheduleWake()
  }

  caughtUp(): void {
    // Commands first: what waits, merged, would otherwise keep those of a client on a slow network waiting for ever.
    const resume = this.onCaughtUp
    this.onCaughtUp = null
    resume?.()
    for (const subscription of this.subscriptions.values()) {
      if (subscription.backlog === null) continue
      // The network may be full again after the first of them; the rest then waits for the next time.
      if (this.outbox.isBehind) return
      for (const bytes of subscription.group?.takeBacklog(subscription) ?? []) this.outbox.send(bytes)
    }
  }

  tooSlow(): void {
    this.relay.atEndOfTurn(() => this.close(DISCONNECT_SLOW))
  }

  sendFailed(error: unknown, isReported: boolean): void {
    this.relay.atEndOfTurn(() => (isReported ? this.close(INTERNAL_ERROR) : this.fail(error)))
  }

  /** Takes the subscription away and tells the client, who may come back at once. */
  loseSubscription(subscription: Subscription, unsubscribe: Unsubscribe): void {
    const { metrics } = this.relay
    const endsConnection = subscription.isServerSide && unsubscribe.code >= 2500
    // The client would take a reply that comes after the push for a new subscription, and wait for publications in vain.
    if (subscription.early !== null && !endsConnection) {
      subscription.endsAfterReply = unsubscribe
      return
    }
    metrics.serverUnsubscribed(subscription.channel.namespace, unsubscribe.code)
    if (endsConnection) {
      const isExpired = unsubscribe === UNSUBSCRIBE_EXPIRED
      this.close(isExpired ? DISCONNECT_SUBSCRIPTION_EXPIRED : DISCONNECT_INSUFFICIENT_STATE)
      return
    }
    this.removeSubscription(subscription)
    const { name, namespace } = subscription.channel
    this.push(unsubscribePush(name, unsubscribe), 'push_unsubscribe', namespace)
  }

  removeSubscription(subscription: Subscription): void {
    if (this.#subscriptions?.get(subscription.channel.name) !== subscription) return
    this.#subscriptions.delete(subscription.channel.name)
    removeSubscription(this, subscription)
  }

  /** Its connect failed: it is not spoken to any more, and closed as one that never said who it is. */
  refuse(): void {
    if (this.isClosed) return
    this.state = 'refused'
    for (const subscription of [...this.subscriptions.values()]) this.removeSubscription(subscription)
  }

  /** The other side is gone. */
  connectionLost(): void {
    this.close(DISCONNECT_NORMAL)
  }

  /** Never throws: each step is made whatever became of the one before. */
  close(reason: Disconnect): void {
    if (this.isClosed) return
    const { relay: context } = this
    const wasLive = this.state === 'live'
    if (reason !== DISCONNECT_NORMAL && reason !== DISCONNECT_SLOW) this.#attempt(() => this.#sendAll())
    this.state = 'ended'
    this.outbox.shut()
    // The socket first: what follows may take time, and the client is already on its way back.
    if (reason !== DISCONNECT_NORMAL) this.#attempt(() => this.#close(reason))
    context.clients.remove(this)
    uncountConnection(this)
    if (this.session !== null) context.sessions.delete(this.session)
    for (const subscription of this.subscriptions.values()) this.#attempt(() => removeSubscription(this, subscription))
    this.#subscriptions = null
    this.onCaughtUp = null
    if (wasLive) context.metrics.clientClosed(this.transport.name, this.name, this.version)
  }

  /** All that the client is to get before it is closed. */
  #sendAll(): void {
    this.settle()
    this.sendReplies()
    this.outbox.flush()
  }

  #close(reason: Disconnect): void {
    const { metrics } = this.relay
    const { name: transport, isEmulated } = this.transport
    metrics.disconnected(transport, reason.code)
    if (isEmulated) count(metrics.sent(transport, 'push_disconnect', ''), disconnectPush(reason).length)
    this.transport.close(reason)
  }

  #attempt(step: () => void): void {
    try {
      step()
    } catch (error) {
      this.relay.metrics.unexpectedError('connection')
      this.relay.log.error({ err: error, client: this.id }, 'internal error while closing a connection')
    }
  }

  /**
   * A pong may be among what has not been read from the client yet. It is not waited for without end: a client that takes
   * nothing of what was written to it is not there any more.
   */
  #mayPongLater(nowMs: number): boolean {
    const { isBehind, drains } = this.outbox
    const isTaking = !isBehind || drains !== this.#drainsAtPing
    this.#drainsAtPing = drains
    this.#pongDueAt = nowMs + this.relay.clientOptions.pongTimeoutMs
    return this.#isReadingPaused && isTaking
  }

  #ping(nowMs: number): void {
    const { clientOptions: client, metrics } = this.relay
    this.#pingAt = nowMs + this.#pingIntervalMs
    // A timeout that was made longer than this client's interval must not start anew with every ping.
    if (client.pongTimeoutMs > 0 && this.#pongDueAt === NO_TIME) this.#pongDueAt = nowMs + client.pongTimeoutMs
    this.#drainsAtPing = this.outbox.drains
    const { pingBytes, name: transport } = this.transport
    count(metrics.sent(transport, 'server_ping', ''), pingBytes.length)
    this.outbox.send(pingBytes)
  }

  #endExpiredSubscriptions(now: Moment): void {
    const grace = this.relay.clientOptions.expiredSubCloseDelayMs
    for (const subscription of [...this.subscriptions.values()]) {
      if (hasExpired(subscription.expiry, grace, now)) this.loseSubscription(subscription, UNSUBSCRIBE_EXPIRED)
      if (this.isClosed) return
    }
  }

  #write(text: string): void {
    this.outbox.send(this.transport.framing(text))
  }
}

const NO_SUBSCRIPTIONS: ReadonlyMap<string, Subscription> = new Map()
