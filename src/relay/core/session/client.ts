import { type Expiry, NEVER } from '../clocks.js'
import {
  type Codec,
  type EncodedMessage,
  type Push,
  payloadBytes,
  type RepliedMethod,
  type Replies
} from '../codec/codec.js'
import { clientInfoText } from '../codec/json-codec.js'
import { encodedBytes } from '../codec/message-parts.js'
import type { ClientTransport } from '../codec/transport.js'
import {
  DISCONNECT_INTERNAL_ERROR,
  DISCONNECT_NORMAL,
  DISCONNECT_SLOW,
  type Disconnect,
  type ReplyError,
  type Unsubscribe
} from '../codes.js'
import { count, type FrameType, type Traffic } from '../core-metrics.js'
import { Outbox, type OutboxOwner } from '../fan-out/outbox.js'
import type { Subscriber, Subscription } from '../fan-out/subscription.js'
import type { Method } from '../protocol.js'
import { ClientDeadlines } from './client-deadlines.js'
import { ClientEvents } from './client-events.js'
import type { RelayContext } from './context.js'
import { HeldReplies, writeMessage } from './held-replies.js'
import { MapLoadings } from './map-loading.js'
import { endSubscription, removeSubscription } from './remove-subscription.js'
import { uncountConnection } from './user-connection-limit.js'

/** `rejected`: the connect command failed, and nothing else is processed until the connection is closed as stale. */
export type ClientState = 'new' | 'connecting' | 'live' | 'rejected' | 'closed'

/** Processes the frames of one client; implemented by the command queue. */
export interface FrameHandler {
  handle(frame: string | Buffer): void
}

/** A command that waits for its reply. */
export interface RunningCommand {
  readonly id: number
  /** Its reply is counted there. */
  readonly traffic: Traffic
}

/** Null: the command succeeded and its reply was written. */
export type CommandOutcome = null | ReplyError | Disconnect

/** One connected client: identity, subscriptions and replies. */
export class Client implements Subscriber, OutboxOwner {
  readonly context: RelayContext
  readonly transport: ClientTransport
  readonly outbox: Outbox
  readonly replies: HeldReplies
  readonly deadlines: ClientDeadlines
  id = ''
  user = ''
  /** `conn_info` as JSON text. */
  info: string | null = null
  name = ''
  version = ''
  state: ClientState = 'new'
  /** Milliseconds since 1970. */
  readonly connectedAt: number
  registryIndex = -1
  /** Session id of an emulated or unidirectional transport, else null. */
  session: string | null = null
  /** Set by the connection token, the backend or the API. */
  expiry: Expiry = NEVER
  /** Whether the connection counts towards `user_connection_limit`. */
  isUserCounted = false
  /** The channels of the connection token, in comparable form. */
  tokenChannels: string | null = null
  /** Channels that running commands will subscribe. The API removes those that it unsubscribes meanwhile. */
  awaitedChannels: Set<string> | null = null
  /** Called once, when the network has accepted everything that was written. */
  onCaughtUp: (() => void) | null = null

  readonly #frames: FrameHandler
  #subscriptions: Map<string, Subscription> | null = null
  #events: ClientEvents | null = null
  #loadings: MapLoadings | null = null
  #isReadingPaused = false

  constructor(context: RelayContext, transport: ClientTransport, frameHandler: (client: Client) => FrameHandler) {
    const { clientOptions, nowMs, clients } = context
    this.context = context
    this.transport = transport
    this.outbox = new Outbox(transport, this, clientOptions.queueMaxBytes)
    this.replies = new HeldReplies(this.outbox)
    this.connectedAt = nowMs()
    this.#frames = frameHandler(this)
    clients.add(this)
    this.deadlines = new ClientDeadlines(this)
  }

  get codec(): Codec {
    return this.transport.framing.codec
  }

  /** Processes a frame from the client: one or more commands. They run in the order of their arrival. */
  handleFrame(frame: string | Buffer): void {
    this.#frames.handle(frame)
  }

  /** Applies changed client options. */
  configure(): void {
    this.outbox.maxBytes = this.context.clientOptions.queueMaxBytes
    this.deadlines.schedule()
  }

  /** Created when it is first used. */
  get events(): ClientEvents {
    this.#events ??= new ClientEvents(this)
    return this.#events
  }

  /** The maps that the client loads. Created when it is first used. */
  get loadings(): MapLoadings {
    this.#loadings ??= new MapLoadings(this)
    return this.#loadings
  }

  /** Monotonic time at which the client is too slow, because it has not finished loading a map. */
  get loadingDeadlineMs(): number {
    return this.#loadings?.nextDeadlineMs ?? Number.POSITIVE_INFINITY
  }

  /** Reports a limit of the configuration that rejects this client. `limit` is a text for operators. */
  limitReached(limit: string): void {
    const { user, transport, context } = this
    context.limitReached(limit, user === '' ? `anonymous client at ${transport.address}` : `user ${user}`)
  }

  /** Number of channels that count for `channel_limit`. */
  get channelCount(): number {
    return this.subscriptions.size + (this.#loadings?.size ?? 0)
  }

  get subscriptions(): ReadonlyMap<string, Subscription> {
    return this.#subscriptions ?? NO_SUBSCRIPTIONS
  }

  get isClosed(): boolean {
    return this.state === 'closed'
  }

  /** Whether the network has not accepted everything that was written to the client. */
  get isBehind(): boolean {
    return this.outbox.isBehind
  }

  addSubscription(subscription: Subscription): void {
    if (this.isClosed) throw new Error('a closed client cannot subscribe')
    this.#subscriptions ??= new Map()
    this.#subscriptions.set(subscription.channel.name, subscription)
  }

  /** JSON text of the `ClientInfo` object that other clients receive. */
  infoText(channelInfo: string | null): string {
    return clientInfoText(this.user, this.id, this.info, channelInfo)
  }

  /** An exempt reply may be larger than `queue_max_size`. */
  reply<M extends RepliedMethod>(
    { id, traffic }: RunningCommand,
    method: M,
    result: Replies[M],
    isExempt = false
  ): void {
    this.#sendReply(traffic, this.codec.reply(id, method, result), isExempt)
  }

  replyError({ id, traffic }: RunningCommand, error: ReplyError): void {
    this.#sendReply(traffic, this.codec.errorReply(id, error))
  }

  #sendReply(traffic: Traffic, reply: EncodedMessage, isExempt = false): void {
    const bytes = encodedBytes(reply)
    count(traffic, bytes)
    this.replies.add(reply, bytes, isExempt)
  }

  /** Maximum size of the next reply, so that the client stays within `queue_max_size`. */
  get replyBytesLeft(): number {
    return this.replies.bytesLeft
  }

  get isReadingPaused(): boolean {
    return this.#isReadingPaused
  }

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

  /** Runs work on behalf of this client. An unexpected error closes this client only. */
  closeOnError(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.fail(error)
    }
  }

  /** Logs and counts an unexpected error, and closes the client, which may reconnect. Never throws. */
  fail(error: unknown, method: Method | null = null): void {
    const { log, metrics } = this.context
    metrics.unexpectedError('connection')
    log.error({ err: error, client: this.id, command: method }, 'internal error in a connection')
    this.close(DISCONNECT_INTERNAL_ERROR)
  }

  /** Sends a push after the held replies: a client must not receive a push for a channel before its subscribe reply. */
  push(push: Push, namespace: string, isExempt = false): void {
    const message = this.codec.push(push)
    const frameType: FrameType = push.kind === 'pub' ? 'push_publication' : `push_${push.kind}`
    count(this.context.metrics.sent(this.transport.name, frameType, namespace), payloadBytes(message))
    this.replies.flush()
    writeMessage(this.outbox, message, isExempt)
  }

  flushReplies(): void {
    this.replies.flush()
  }

  /** Sends everything that is still queued in this turn, for this client and for the subscribers of all channels. */
  flushPending(): void {
    this.replies.flush()
    this.context.hub.flush()
  }

  /** The connect command has succeeded. */
  goLive(): void {
    this.state = 'live'
    this.awaitedChannels = null
    this.deadlines.goLive()
  }

  caughtUp(): void {
    // Commands first: with a slow network, merged publications could otherwise delay them for ever.
    const resume = this.onCaughtUp
    this.onCaughtUp = null
    resume?.()
    for (const subscription of this.subscriptions.values()) {
      if (subscription.backlog === null) continue
      // The network may be full again after the first backlog; the others wait for the next drain.
      if (this.isBehind) return
      // Moved to the end, so that the next drain begins with the others.
      this.#subscriptions?.delete(subscription.channel.name)
      this.addSubscription(subscription)
      for (const bytes of subscription.group?.takeBacklog(subscription) ?? []) this.outbox.send(bytes)
    }
  }

  tooSlow(): void {
    this.context.atEndOfTurn(() => this.close(DISCONNECT_SLOW))
  }

  sendFailed(error: unknown, isReported: boolean): void {
    this.context.atEndOfTurn(() => (isReported ? this.close(DISCONNECT_INTERNAL_ERROR) : this.fail(error)))
  }

  /** Ends a subscription on the server side and notifies the client, which may resubscribe. */
  endSubscription(subscription: Subscription, unsubscribe: Unsubscribe): void {
    endSubscription(this, subscription, unsubscribe)
  }

  removeSubscription(subscription: Subscription): void {
    if (this.#subscriptions?.get(subscription.channel.name) !== subscription) return
    this.#subscriptions.delete(subscription.channel.name)
    removeSubscription(this, subscription)
  }

  /** After a failed connect command. Later frames are ignored until the connection is closed as stale. */
  reject(): void {
    if (this.isClosed) return
    this.state = 'rejected'
    for (const subscription of [...this.subscriptions.values()]) this.removeSubscription(subscription)
  }

  /** The transport was closed by the other side. */
  connectionLost(): void {
    this.close(DISCONNECT_NORMAL)
  }

  /** Never throws: an error in one step does not prevent the following steps. */
  close(reason: Disconnect): void {
    if (this.isClosed) return
    const { context } = this
    const wasLive = this.state === 'live'
    // A backend may choose this code to cut the connection, as a network would.
    const isCut = reason.code === DISCONNECT_NORMAL.code
    if (!isCut) this.#attempt(() => this.#sendAll())
    this.state = 'closed'
    this.outbox.close()
    // The socket first: the following steps may take time, and the client should reconnect soon.
    if (reason !== DISCONNECT_NORMAL)
      this.#attempt(() => (isCut ? this.transport.drop() : this.#closeTransport(reason)))
    this.#events?.abort()
    context.clients.remove(this)
    uncountConnection(this)
    if (this.session !== null) context.sessions.delete(this.session)
    this.#attempt(() => this.#loadings?.cancelAll())
    for (const subscription of this.subscriptions.values()) this.#attempt(() => removeSubscription(this, subscription))
    this.#subscriptions = null
    this.onCaughtUp = null
    if (wasLive) context.metrics.clientClosed(this.transport.name, this.name, this.version)
  }

  /** Sends everything that the client must receive before it is closed. */
  #sendAll(): void {
    this.flushPending()
    this.replies.send()
    this.outbox.flush()
  }

  #closeTransport(reason: Disconnect): void {
    const { metrics } = this.context
    const { name: transport, isEmulated, isUnidirectional } = this.transport
    metrics.disconnected(transport, reason.code)
    if (isEmulated || isUnidirectional) {
      const message = this.codec.push({ kind: 'disconnect', disconnect: reason })
      count(metrics.sent(transport, 'push_disconnect', ''), payloadBytes(message))
    }
    this.transport.close(reason)
  }

  #attempt(step: () => void): void {
    try {
      step()
    } catch (error) {
      this.context.metrics.unexpectedError('connection')
      this.context.log.error({ err: error, client: this.id }, 'internal error while closing a connection')
    }
  }
}

const NO_SUBSCRIPTIONS: ReadonlyMap<string, Subscription> = new Map()
