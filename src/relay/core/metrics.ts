import type { ResolvedChannel } from './channels.js'
import type { HistoryOptions } from './options.js'
import type { Method } from './protocol.js'

/** Numbers to add to, found once and kept by those who write to many. */
export interface Traffic {
  readonly messages: { value: number }
  readonly bytes: { value: number }
}

/** What a message to a client is; a reply has the name of its command. */
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

/** What is asked of the engine, beside what else is told here. */
export type Action =
  | 'add_presence'
  | 'remove_presence'
  | 'presence'
  | 'presence_stats'
  | 'history'
  | 'history_recover'
  | 'history_recover_cache'
  | 'history_remove'

/** What an unexpected error ended: a client's connection, a delivery, work that nobody waited for, or an HTTP request. */
export type ErrorSource = 'connection' | 'delivery' | 'background' | 'http'

export type MessageType = 'publication' | 'join' | 'leave' | 'control'

/** Told what happens, to be counted. Every call must be cheap; those on the way of a publication most of all. */
export interface CoreMetrics {
  clientConnected(transport: string, name: string, version: string): void
  /** Of a connection that was told to be connected before. */
  clientClosed(transport: string, name: string, version: string): void
  /** The server ended a connection. */
  disconnected(transport: string, code: number): void
  subscribed(namespace: string, clientName: string): void
  unsubscribed(namespace: string, clientName: string): void
  /** The server ended a subscription. */
  serverUnsubscribed(namespace: string, code: number): void
  command(method: Method | 'pong', namespace: string, bytes: number, transport: string): void
  replied(method: Method, namespace: string, seconds: number): void
  replyError(method: Method, namespace: string, code: number): void
  recovered(namespace: string, isRecovered: boolean, hasPublications: boolean): void
  pongReceived(transport: string, seconds: number): void
  published(namespace: string): void
  suppressed(namespace: string, reason: 'idempotency' | 'version'): void
  messageSent(type: MessageType, namespace: string): void
  delivered(type: MessageType, namespace: string, broadcastSeconds: number, lagSeconds: number): void
  conflated(namespace: string, publications: number): void
  engineAction(action: Action, namespace: string): void
  /** An error that nobody expected was caught, and ended nothing else. */
  unexpectedError(source: ErrorSource): void
  sent(transport: string, frameType: FrameType, namespace: string): Traffic
}

export const count = ({ messages, bytes }: Traffic, length: number): void => {
  messages.value += 1
  bytes.value += length
}

const nothing = (): void => undefined

export const NO_METRICS: CoreMetrics = {
  clientConnected: nothing,
  clientClosed: nothing,
  disconnected: nothing,
  subscribed: nothing,
  unsubscribed: nothing,
  serverUnsubscribed: nothing,
  command: nothing,
  replied: nothing,
  replyError: nothing,
  recovered: nothing,
  pongReceived: nothing,
  published: nothing,
  suppressed: nothing,
  messageSent: nothing,
  delivered: nothing,
  conflated: nothing,
  engineAction: nothing,
  unexpectedError: nothing,
  sent: () => ({ messages: { value: 0 }, bytes: { value: 0 } })
}

/** A publisher that makes up names faster than anybody reads them pushes out the oldest. */
const MAX_CHANNELS = 200_000
const WINDOW_MS = 10_000

/** When and how often one channel was published to through this node. All times are on the monotonic clock. */
export class ChannelActivity {
  lastAt = 0
  /** How many of its publications its history holds, as far as they came through this node. */
  #stored = 0
  #storedUntil = Number.NEGATIVE_INFINITY
  #windowAt = 0
  #count = 0
  #countBefore = 0

  add(nowMs: number): void {
    this.#move(nowMs)
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

  /** Over the last ten seconds: this window, and as much of the one before as still counts. */
  perSecond(nowMs: number): number {
    this.#move(nowMs)
    const share = 1 - (nowMs - this.#windowAt) / WINDOW_MS
    return (this.#count + this.#countBefore * share) / (WINDOW_MS / 1000)
  }

  #move(nowMs: number): void {
    const windows = Math.floor((nowMs - this.#windowAt) / WINDOW_MS)
    if (windows === 0) return
    this.#countBefore = windows === 1 ? this.#count : 0
    this.#count = 0
    this.#windowAt = nowMs - ((nowMs - this.#windowAt) % WINDOW_MS)
  }
}

/**
 * What is published through this node, by channel: a channel that nobody listens to is known here all the same. A few
 * numbers for each publication, which is little beside what else it costs.
 */
export class PublishActivity {
  readonly #channels = new Map<string, ChannelActivity>()
  readonly #lastByNamespace = new Map<string, number>()

  get channels(): ReadonlyMap<string, ChannelActivity> {
    return this.#channels
  }

  /** When anything was published; null before the first. */
  get last(): number | null {
    let last: number | null = null
    for (const at of this.#lastByNamespace.values()) last = Math.max(last ?? 0, at)
    return last
  }

  lastIn(namespace: string): number | null {
    return this.#lastByNamespace.get(namespace) ?? null
  }

  /** `isStored`: the channel's history has it now. */
  published(channel: string, { namespace, options }: ResolvedChannel, nowMs: number, isStored: boolean): void {
    this.#lastByNamespace.set(namespace, nowMs)
    let activity = this.#channels.get(channel)
    if (activity === undefined) {
      activity = new ChannelActivity()
      if (this.#channels.size >= MAX_CHANNELS) this.#channels.delete(this.#channels.keys().next().value as string)
      this.#channels.set(channel, activity)
    }
    activity.add(nowMs)
    if (isStored) activity.addStored(nowMs, options)
  }
}
