import type { TagFilter } from './tag-filter.js'

/** Every publication is compared with each. */
export const MAX_FILTERS = 256

/** The different tag filters of one channel. */
export class ChannelFilters {
  /** Number of subscriptions by the text of their filter; null before the first one. */
  #subscriptions: Map<string, number> | null = null

  /** Whether a subscription with this filter is within the limit. */
  accepts({ text }: TagFilter): boolean {
    return this.#subscriptions === null || this.#subscriptions.has(text) || this.#subscriptions.size < MAX_FILTERS
  }

  open({ text }: TagFilter): void {
    this.#subscriptions ??= new Map()
    this.#subscriptions.set(text, (this.#subscriptions.get(text) ?? 0) + 1)
  }

  close({ text }: TagFilter): void {
    const left = (this.#subscriptions?.get(text) ?? 0) - 1
    if (left > 0) this.#subscriptions?.set(text, left)
    else this.#subscriptions?.delete(text)
  }
}
