import { EngineFault } from '../../core/engine-fault.js'
import { addressName, type RedisAddress } from './address.js'
import { faultText } from './connection.js'
import { askServer } from './discovery.js'
import { SERVICE_TAG } from './names.js'
import type { OpenShard, Placement } from './placement.js'
import type { Shard } from './shard.js'
import { channelTag, SLOTS, slotOfTag } from './slots.js'

/** How often to look while something is amiss, and otherwise. */
const LOOK_MS = 500
const LOOK_AT_EASE_MS = 10_000

/** The servers of one Redis Cluster that keep something: each has slots, and a channel is in the slot of its name. */
export class ClusterServers implements Placement {
  readonly #seeds: readonly RedisAddress[]
  readonly #open: OpenShard
  readonly #moved: () => void
  readonly #shards = new Map<string, Shard>()
  #owners: (Shard | undefined)[] = []
  #refreshing: Promise<void> | null = null
  #lookedAt = 0
  #fault = 'the cluster has not answered'
  readonly #looking: NodeJS.Timeout

  /** `moved` is called when slots have other owners than before. */
  constructor(seeds: readonly RedisAddress[], open: OpenShard, moved: () => void) {
    this.#seeds = seeds
    this.#open = open
    this.#moved = moved
    this.#looking = setInterval(() => {
      if (!this.isReady || performance.now() - this.#lookedAt > LOOK_AT_EASE_MS) void this.refresh()
    }, LOOK_MS).unref()
    void this.refresh()
  }

  get isReady(): boolean {
    if (this.#owners.length !== SLOTS || this.#owners.includes(undefined)) return false
    for (const shard of this.#shards.values()) if (!shard.isReady) return false
    return true
  }

  get fault(): string {
    for (const { isReady, address, fault } of this.#shards.values()) {
      if (!isReady && fault !== null) return faultText(address, fault)
    }
    return this.#fault
  }

  get serviceShards(): readonly Shard[] {
    const owner = this.#owners[slotOfTag(SERVICE_TAG)]
    return owner === undefined ? [] : [owner]
  }

  shardOf(channel: string): Shard {
    const owner = this.#owners[slotOfTag(channelTag(channel))]
    if (owner === undefined) throw new EngineFault('no server of the cluster has the slot')
    return owner
  }

  /** Several who ask at the same time get the same look. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#look().finally(() => {
      this.#refreshing = null
    })
    return this.#refreshing
  }

  close(): void {
    clearInterval(this.#looking)
    for (const shard of this.#shards.values()) shard.close()
    this.#shards.clear()
  }

  async #look(): Promise<void> {
    this.#lookedAt = performance.now()
    const known = [...this.#shards.values()].sort((a, b) => Number(b.isReady) - Number(a.isReady))
    for (const address of [...known.map(({ address }) => address), ...this.#seeds]) {
      try {
        this.#arrange(readSlots(await askServer(address, 'cluster', ['SLOTS']), address))
        return
      } catch (error) {
        this.#fault = faultText(address, error)
      }
    }
  }

  #arrange(ranges: readonly SlotRange[]): void {
    const owners: (Shard | undefined)[] = new Array(SLOTS).fill(undefined)
    for (const { from, to, address } of ranges) owners.fill(this.#shardAt(address), from, to + 1)
    const isSame = owners.every((owner, slot) => owner === this.#owners[slot])
    this.#owners = owners
    if (isSame) return
    // Names leave a server before it is closed, and with it what it was subscribed to.
    this.#moved()
    const used = new Set(owners)
    for (const [name, shard] of this.#shards) {
      if (used.has(shard)) continue
      this.#shards.delete(name)
      shard.close()
    }
  }

  #shardAt(address: RedisAddress): Shard {
    const name = addressName(address)
    const known = this.#shards.get(name)
    if (known !== undefined) return known
    const shard: Shard = this.#open(address, true, () => this.#tagAt(shard))
    this.#shards.set(name, shard)
    return shard
  }

  /** Any tag whose slot this server has. */
  #tagAt(shard: Shard): string | null {
    for (let tag = 0; tag < SLOTS; tag++) if (this.#owners[slotOfTag(String(tag))] === shard) return String(tag)
    return null
  }
}

interface SlotRange {
  readonly from: number
  readonly to: number
  readonly address: RedisAddress
}

/** Ranges with the server that has them; replicas follow it in the answer. */
const readSlots = (answer: unknown, asked: RedisAddress): readonly SlotRange[] =>
  (answer as readonly [number, number, readonly [string | null, number]][]).map(([from, to, [host, port]]) => ({
    from,
    to,
    // Secrets are the same for all; who does not know its own name has the one that it was asked by.
    address: { ...asked, host: host || asked.host, port }
  }))
