import type { ChannelKind } from './channels.js'
import type { HistoryOptions } from './options.js'

/** A publisher that makes up names faster than anybody reads them pushes out the oldest. */
const MAX_CHANNELS = 200_000
const WINDOW_MS = 10_000

/** When and how often one channel was published to through this node. All times are on the monotonic clock. */
export class ChannelActivity {
  lastAt = 0
  /** How many of its publications its history holds, as far as they came through this node. */
  #kept = 0
  #keptUntil = Number.NEGATIVE_INFINITY
  #windowAt = 0
  #count = 0
  #countBefore = 0

  add(nowMs: number): void {
    this.#move(nowMs)
    this.#count++
    this.lastAt = nowMs
  }

  keep(nowMs: number, { historySize, historyTtlMs }: HistoryOptions): void {
    this.#kept = Math.min(this.kept(nowMs) + 1, historySize)
    this.#keptUntil = nowMs + historyTtlMs
  }

  forgetKept(): void {
    this.#kept = 0
  }

  kept(nowMs: number): number {
    return nowMs < this.#keptUntil ? this.#kept : 0
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
export class Activity {
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

  /** `isKept`: the channel's history has it now. */
  published(channel: string, { namespace, options }: ChannelKind, nowMs: number, isKept: boolean): void {
    this.#lastByNamespace.set(namespace, nowMs)
    let activity = this.#channels.get(channel)
    if (activity === undefined) {
      activity = new ChannelActivity()
      if (this.#channels.size >= MAX_CHANNELS) this.#channels.delete(this.#channels.keys().next().value as string)
      this.#channels.set(channel, activity)
    }
    activity.add(nowMs)
    if (isKept) activity.keep(nowMs, options)
  }
}
