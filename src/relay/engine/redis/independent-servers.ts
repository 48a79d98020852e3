import type { RedisAddress } from './address.js'
import { faultText } from './connection.js'
import { SERVICE_TAG } from './names.js'
import type { OpenShard, Placement } from './placement.js'
import { Ring } from './ring.js'
import type { Shard } from './shard.js'

/** One Redis, or several that know nothing of each other, each with its share of the channels. */
export class IndependentServers implements Placement {
  readonly serviceShards: readonly Shard[]
  readonly #ring: Ring<Shard>
  readonly #only: Shard | null

  constructor(addresses: readonly RedisAddress[], open: OpenShard) {
    this.serviceShards = addresses.map((address) => open(address, false, () => SERVICE_TAG))
    this.#ring = new Ring(this.serviceShards)
    this.#only = this.serviceShards.length === 1 ? (this.serviceShards[0] as Shard) : null
  }

  get isReady(): boolean {
    return this.serviceShards.every(({ isReady }) => isReady)
  }

  get fault(): string {
    const away = this.serviceShards.find(({ isReady }) => !isReady)
    return away === undefined ? '' : faultText(away.address, away.fault ?? new Error('no answer'))
  }

  shardOf(channel: string): Shard {
    return this.#only ?? this.#ring.ownerOf(channel)
  }

  async refresh(): Promise<void> {}

  close(): void {
    for (const shard of this.serviceShards) shard.close()
  }
}
