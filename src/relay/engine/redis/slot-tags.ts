import { monotonicMs } from '../../../shared/monotonic.js'
import { TimeSlice } from '../../core/time-slice.js'
import { CONTROL_TAG, channelSlot, HASH_SLOTS } from './keys.js'
import type { ShardRouter } from './shard-router.js'

/**
 * Hash tags of keys that many channels share. A script can use a key of a channel and a shared one only if both are at one server
 * and, in a Redis Cluster, in one hash slot. So a server has one tag, or one for each of its hash slots.
 */
export class SlotTags {
  readonly #router: ShardRouter
  /** A channel name for each hash slot, in a Redis Cluster. */
  readonly #names: string[] = []
  #preparing: Promise<void> | null = null

  constructor(router: ShardRouter) {
    this.#router = router
  }

  /** Resolves when the other methods can be called. */
  async prepare(): Promise<void> {
    if (!this.#router.isSlotted) return
    this.#preparing ??= this.#findNames()
    await this.#preparing
  }

  /** The tag for the channel. */
  of(channel: string): string {
    return this.#router.isSlotted ? this.ofSlot(channelSlot(channel)) : CONTROL_TAG
  }

  ofSlot(slot: number): string {
    return `:${this.#names[slot]}`
  }

  /** A channel name in each hash slot; none without slots. */
  get names(): readonly string[] {
    return this.#names
  }

  /** Tries names until every hash slot has one. In slices, because it takes a fifth of a second. */
  async #findNames(): Promise<void> {
    const slice = new TimeSlice(monotonicMs)
    for (let name = 0, found = 0; found < HASH_SLOTS; name++) {
      const slot = channelSlot(String(name))
      if (this.#names[slot] === undefined) {
        this.#names[slot] = String(name)
        found += 1
      }
      if (slice.isOverAfterStep) await slice.next()
    }
  }
}
