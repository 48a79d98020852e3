import { BoundedMap } from '../../../shared/bounded-map.js'
import type { ResolvedChannel } from '../channel-names.js'
import type { HistoryOptions } from '../options.js'

/** Limit for publishers that generate channel names; the channels without recent publications are dropped. */
const MIN_CHANNELS = 100_000
const WINDOW_MS = 10_000

/** Time and rate of the publications to one channel through this node. All times are monotonic. */
class ChannelActivity {
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
  readonly #channels = new BoundedMap<string, ChannelActivity>(MIN_CHANNELS)
  readonly #lastByNamespace = new Map<string, number>()

  get channels(): Pick<BoundedMap<string, ChannelActivity>, 'get' | 'keys' | 'size'> {
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
    const activity = this.#channels.get(channel) ?? new ChannelActivity()
    this.#channels.set(channel, activity)
    activity.add(nowMs)
    if (isStored) activity.addStored(nowMs, options)
  }
}
