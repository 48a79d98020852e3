import { BoundedMap } from '../../../shared/bounded-map.js'
import type { ResolvedChannel } from '../channel-names.js'
import type { HistoryOptions } from '../options.js'
import { RecentRate } from '../recent-rate.js'

/** Limit for publishers that generate channel names; the channels without recent publications are dropped. */
const MIN_CHANNELS = 100_000
const WINDOW_MS = 10_000

/** Time and rate of the publications to one channel through this node. All times are monotonic. */
class ChannelActivity extends RecentRate {
  lastAt = 0
  /** Number of publications in the history that were published through this node. */
  #stored = 0
  #storedUntil = Number.NEGATIVE_INFINITY

  constructor() {
    super(WINDOW_MS)
  }

  override add(nowMs: number): void {
    super.add(nowMs)
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
