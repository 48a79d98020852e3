import { monotonicMs } from '../../../shared/monotonic.js'
import { TimeSlice } from '../../core/time-slice.js'
import { CONTROL, channelSlot, HASH_SLOTS } from './keys.js'
import type { Shard } from './shard.js'
import type { ShardRouter } from './shard-router.js'

/** How long indexes are looked for at the servers that had them. */
const ASSIGNMENT_TTL_MS = 10_000

/**
 * The keys of the indexes of maps with deadlines. A script can write a map and its index only if both are at one server and, in a
 * Redis Cluster, in one hash slot. So a server has one index, or one for each of its hash slots.
 */
export class MapIndexes {
  readonly #router: ShardRouter
  /** A channel name for each hash slot, in a Redis Cluster. */
  readonly #names: string[] = []
  #preparing: Promise<void> | null = null
  #assigned: ReadonlyMap<Shard, readonly string[]> | null = null
  #assignedAt = 0

  constructor(router: ShardRouter) {
    this.#router = router
  }

  /** Resolves when `keyOf` can be called. */
  async prepare(): Promise<void> {
    if (!this.#router.isSlotted) return
    this.#preparing ??= this.#findNames()
    await this.#preparing
  }

  /** The index that contains the channel. */
  keyOf(channel: string): string {
    const { isSlotted, keys } = this.#router
    return isSlotted ? this.#keyOfSlot(channelSlot(channel)) : keys.control(CONTROL.mapIndex)
  }

  /** All indexes by the server that has them. */
  async byShard(): Promise<ReadonlyMap<Shard, readonly string[]>> {
    if (!this.#router.isSlotted) return new Map(this.#router.shards.map((shard) => [shard, [this.keyOf('')]]))
    const nowMs = monotonicMs()
    if (this.#assigned === null || nowMs - this.#assignedAt > ASSIGNMENT_TTL_MS) {
      this.#assigned = await this.#assign()
      this.#assignedAt = nowMs
    }
    return this.#assigned
  }

  /** Called when a server did not have an index. */
  forgetShards(): void {
    this.#assigned = null
  }

  #keyOfSlot(slot: number): string {
    return this.#router.keys.control(CONTROL.mapIndex, `:${this.#names[slot]}`)
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

  async #assign(): Promise<ReadonlyMap<Shard, readonly string[]>> {
    const slice = new TimeSlice(monotonicMs)
    const assigned = new Map<Shard, string[]>()
    for (const [slot, name] of this.#names.entries()) {
      const shard = this.#router.findShard(name)
      const indexes = shard === null ? undefined : assigned.get(shard)
      if (indexes !== undefined) indexes.push(this.#keyOfSlot(slot))
      else if (shard !== null) assigned.set(shard, [this.#keyOfSlot(slot)])
      if (slice.isOverAfterStep) await slice.next()
    }
    return assigned
  }
}
