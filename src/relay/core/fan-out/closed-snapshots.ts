import type { ChannelOptions } from '../options.js'
import type { ChannelSnapshot } from './channel-snapshot.js'

/** A client that moves its view leaves the channel first, and may be its only subscriber. */
const KEEP_MS = 10_000
/** Keys of all kept snapshots together. */
const MAX_KEPT_KEYS = 100_000

interface Kept {
  readonly snapshot: ChannelSnapshot
  /** A reload replaces the options. */
  readonly options: ChannelOptions
  readonly keys: number
  readonly cancelTimer: () => void
}

/** Merged histories of channels that were closed a moment ago. The next subscriber adds only what was published since. */
export class ClosedSnapshots {
  readonly #setTimer: (task: () => void, ms: number) => () => void
  /** By channel, the one that was closed first at the beginning. */
  readonly #kept = new Map<string, Kept>()
  #keys = 0

  constructor(setTimer: (task: () => void, ms: number) => () => void) {
    this.#setTimer = setTimer
  }

  keep(channel: string, options: ChannelOptions, snapshot: ChannelSnapshot): void {
    const keys = snapshot.size
    if (keys === 0) return
    this.#forget(channel)
    const cancelTimer = this.#setTimer(() => this.#forget(channel), KEEP_MS)
    this.#kept.set(channel, { snapshot, options, keys, cancelTimer })
    this.#keys += keys
    for (const oldest of this.#kept.keys()) {
      if (this.#keys <= MAX_KEPT_KEYS || oldest === channel) return
      this.#forget(oldest)
    }
  }

  /** Null if there is none for these options. */
  take(channel: string, options: ChannelOptions): ChannelSnapshot | null {
    const kept = this.#kept.get(channel)
    this.#forget(channel)
    return kept?.options === options ? kept.snapshot : null
  }

  #forget(channel: string): void {
    const kept = this.#kept.get(channel)
    if (kept === undefined) return
    kept.cancelTimer()
    this.#kept.delete(channel)
    this.#keys -= kept.keys
  }
}
