import { monotonicMs } from '../../../shared/monotonic.js'
import { TimeSlice } from '../../core/time-slice.js'
import { CONTROL } from './keys.js'
import type { Shard } from './shard.js'
import type { ShardRouter } from './shard-router.js'
import type { SlotTags } from './slot-tags.js'

/** How long indexes are looked for at the servers that had them. */
const ASSIGNMENT_TTL_MS = 10_000

/** The keys of the indexes of maps with deadlines. A write changes a map and its index. */
export class MapIndexes {
  readonly #router: ShardRouter
  readonly #tags: SlotTags
  #assigned: ReadonlyMap<Shard, readonly string[]> | null = null
  #assignedAt = 0

  constructor(router: ShardRouter, tags: SlotTags) {
    this.#router = router
    this.#tags = tags
  }

  /** Resolves when `keyOf` can be called. */
  prepare(): Promise<void> {
    return this.#tags.prepare()
  }

  /** The index that contains the channel. */
  keyOf(channel: string): string {
    return this.#keyWithTag(this.#tags.of(channel))
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

  #keyWithTag(tag: string): string {
    return this.#router.keys.control(CONTROL.mapIndex, tag)
  }

  async #assign(): Promise<ReadonlyMap<Shard, readonly string[]>> {
    const slice = new TimeSlice(monotonicMs)
    const assigned = new Map<Shard, string[]>()
    for (const [slot, name] of this.#tags.names.entries()) {
      const shard = this.#router.findShard(name)
      const index = this.#keyWithTag(this.#tags.ofSlot(slot))
      const indexes = shard === null ? undefined : assigned.get(shard)
      if (indexes !== undefined) indexes.push(index)
      else if (shard !== null) assigned.set(shard, [index])
      if (slice.isOverAfterStep) await slice.next()
    }
    return assigned
  }
}
