import type { ResolvedChannel } from './channels.js'
import type { HistoryOptions } from './options.js'
import type { Method } from './protocol.js'

/** Counters that a sender looks up once and increments directly. */
export interface Traffic {
  readonly messages: { value: number }
  readonly bytes: { value: number }
}

/** Type of a message to a client; replies have the name of their command. */
export type FrameType =
  | Method
  | 'server_ping'
  | 'push_publication'
  | 'push_join'
  | 'push_leave'
  | 'push_subscribe'
  | 'push_unsubscribe'
  | 'push_refresh'
  | 'push_disconnect'

/** Engine actions that have no metric of their own. */
export type Action =
  | 'add_presence'
  | 'remove_presence'
  | 'presence'
  | 'presence_stats'
  | 'history'
  | 'history_recover'
  | 'history_recover_cache'
  | 'history_remove'

/** Where an unexpected error occurred. `background` is work that no client waits for. */
export type ErrorSource = 'connection' | 'delivery' | 'background' | 'http'

export type MessageType = 'publication' | 'join' | 'leave' | 'control'

/** Counts events of the core. Calls must be cheap, above all those for each publication. */
export interface CoreMetrics {
  clientConnected(transport: string, name: string, version: string): void
  /** Only for connections that were counted as connected. */
  clientClosed(transport: string, name: string, version: string): void
  /** The relay closed a connection. */
  disconnected(transport: string, code: number): void
  subscribed(namespace: string, clientName: string): void
  unsubscribed(namespace: string, clientName: string): void
  /** The relay ended a subscription. */
  serverUnsubscribed(namespace: string, code: number): void
  command(method: Method | 'pong', namespace: string, bytes: number, transport: string): void
  replied(method: Method, namespace: string, seconds: number): void
  replyError(method: Method, namespace: string, code: number): void
  recovered(namespace: string, isRecovered: boolean, publications: number): void
  pongReceived(transport: string, seconds: number): void
  published(namespace: string): void
  suppressed(namespace: string, reason: 'idempotency' | 'version'): void
  messageSent(type: MessageType, namespace: string): void
  delivered(type: MessageType, namespace: string, broadcastSeconds: number, lagSeconds: number | null): void
  conflated(namespace: string, publications: number): void
  engineAction(action: Action, namespace: string): void
  /** An unexpected error was caught and affected nothing else. */
  unexpectedError(source: ErrorSource): void
  sent(transport: string, frameType: FrameType, namespace: string): Traffic
}

/** Counts one message of this size. */
export const count = ({ messages, bytes }: Traffic, size: number): void => {
  messages.value += 1
  bytes.value += size
}

const noop = (): void => undefined

export const NO_METRICS: CoreMetrics = {
  clientConnected: noop,
  clientClosed: noop,
  disconnected: noop,
  subscribed: noop,
  unsubscribed: noop,
  serverUnsubscribed: noop,
  command: noop,
  replied: noop,
  replyError: noop,
  recovered: noop,
  pongReceived: noop,
  published: noop,
  suppressed: noop,
  messageSent: noop,
  delivered: noop,
  conflated: noop,
  engineAction: noop,
  unexpectedError: noop,
  sent: () => ({ messages: { value: 0 }, bytes: { value: 0 } })
}

/** Limit for publishers that generate channel names; the oldest channels are dropped. */
const MAX_CHANNELS = 200_000
const WINDOW_MS = 10_000

/** Time and rate of the publications to one channel through this node. All times are monotonic. */
export class ChannelActivity {
  lastAt = 0
  /** Number of publications in the history that were published through this node. */
  #stored = 0
  #storedUntil = Number.NEGATIVE_INFINITY
  #windowStart = 0
  #count = 0
  #previousCount = 0

  add(nowMs: number): void {
    this.#advanceWindow(nowMs)
    this.#count++
    this.lastAt = nowMs
  }

  addStored(nowMs: number, { historySize, historyTtlMs }: HistoryOptions): void {
    this.#stored = Math.min(this.stored(nowMs) + 1, historySize)
    this.#storedUntil = nowMs + historyTtlMs
  }

  clearStored(): void {
    this.#stored = 0
  }

  stored(nowMs: number): number {
    return nowMs < this.#storedUntil ? this.#stored : 0
  }

  /** Rate over the last ten seconds: the current window and the overlapping part of the previous one. */
  perSecond(nowMs: number): number {
    this.#advanceWindow(nowMs)
    const share = 1 - (nowMs - this.#windowStart) / WINDOW_MS
    return (this.#count + this.#previousCount * share) / (WINDOW_MS / 1000)
  }

  #advanceWindow(nowMs: number): void {
    const windows = Math.floor((nowMs - this.#windowStart) / WINDOW_MS)
    if (windows === 0) return
    this.#previousCount = windows === 1 ? this.#count : 0
    this.#count = 0
    this.#windowStart = nowMs - ((nowMs - this.#windowStart) % WINDOW_MS)
  }
}

/** Publications through this node by channel, including channels without subscribers on this node. */
export class PublishActivity {
  readonly #channels = new Map<string, ChannelActivity>()
  readonly #lastByNamespace = new Map<string, number>()

  get channels(): ReadonlyMap<string, ChannelActivity> {
    return this.#channels
  }

  /** Monotonic time of the last publication; null before the first. */
  get last(): number | null {
    let last: number | null = null
    for (const at of this.#lastByNamespace.values()) last = Math.max(last ?? 0, at)
    return last
  }

  lastIn(namespace: string): number | null {
    return this.#lastByNamespace.get(namespace) ?? null
  }

  /** `isStored`: the publication is in the channel's history. */
  published(channel: string, { namespace, options }: ResolvedChannel, nowMs: number, isStored: boolean): void {
    this.#lastByNamespace.set(namespace, nowMs)
    let activity = this.#channels.get(channel)
    if (activity === undefined) {
      activity = new ChannelActivity()
      if (this.#channels.size >= MAX_CHANNELS) this.#deleteOldest()
      this.#channels.set(channel, activity)
    }
    activity.add(nowMs)
    if (isStored) activity.addStored(nowMs, options)
  }

  #deleteOldest(): void {
    for (const channel of this.#channels.keys()) {
      this.#channels.delete(channel)
      return
    }
  }
}
