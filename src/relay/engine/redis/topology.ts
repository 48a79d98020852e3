import { setTimeout } from 'node:timers/promises'
import { Command } from 'ioredis'
import { EngineError } from '../../core/broker.js'
import { addressName, type RedisAddress } from './address.js'
import { hashSlot, hashTag, SERVICE_TAG, SLOTS } from './names.js'
import { faultText, openConnection, type Shard, serverInfo } from './shard.js'

/** Which server keeps which channel. */
export interface Placement {
  /** Throws `EngineFault` where nobody knows. */
  shardOf(channel: string): Shard
  /** Where to listen for what nodes tell each other. It is told at the first of them that works. */
  readonly serviceShards: readonly Shard[]
  /** All servers work. */
  readonly isReady: boolean
  /** Why it is not. */
  readonly fault: string
  /** Looks again who keeps what, and settles when that is known. */
  refresh(): Promise<void>
  close(): void
}

/** `pulseTag`: with what tag a name belongs to this server. */
export type OpenShard = (address: RedisAddress, isSharded: boolean, pulseTag: () => string | null) => Shard

/** So many places for each server: the shares differ by less than a tenth or so. */
const POINTS_EACH = 160

/**
 * Consistent hashing: of n servers one that is added or removed changes the place of one channel in n. It depends on the
 * servers' names alone, so all relays agree, in whatever order they list them.
 */
export class Ring<T extends { readonly name: string }> {
  readonly #hashes: Uint32Array
  readonly #owners: readonly T[]

  constructor(servers: readonly T[]) {
    const points = servers
      .flatMap((server) =>
        Array.from({ length: POINTS_EACH }, (_, index) => ({ hash: hashOf(`${server.name}#${index}`), server }))
      )
      .sort((a, b) => a.hash - b.hash || (a.server.name < b.server.name ? -1 : 1))
    this.#hashes = Uint32Array.from(points, ({ hash }) => hash)
    this.#owners = points.map(({ server }) => server)
  }

  /** The first at or behind the name's hash; behind the last comes the first. */
  ownerOf(name: string): T {
    const hash = hashOf(name)
    let low = 0
    let high = this.#hashes.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#hashes[middle] as number) < hash) low = middle + 1
      else high = middle
    }
    return this.#owners[low % this.#owners.length] as T
  }
}

/** FNV-1a, and a last stir, because names that differ in their last letter would lie side by side. */
const hashOf = (text: string): number => {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

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

const AGAIN_MS = 200

/** One question over a connection of its own, to a server of which nothing is known yet. */
export const askServer = async (address: RedisAddress, name: string, args: readonly string[]): Promise<unknown> => {
  const redis = openConnection(address, 'discovery')
  try {
    await new Promise((resolve, reject) => {
      let cause: Error | null = null
      redis.once('ready', resolve)
      redis.on('error', (error: Error) => {
        cause = error
      })
      redis.once('close', () => reject(cause ?? new Error('the connection was closed')))
    })
    return await redis.sendCommand(new Command(name, [...args], { replyEncoding: 'utf8' }))
  } finally {
    redis.disconnect()
  }
}

/** Whether the addresses are those of a cluster, as the first that answers says. Throws the fault that is hopeless. */
export const isClusterAt = async (
  addresses: readonly RedisAddress[],
  isHopeless: (fault: string) => boolean
): Promise<boolean> => {
  for (;;) {
    for (const address of addresses) {
      try {
        return serverInfo(String(await askServer(address, 'info', []))).isCluster
      } catch (error) {
        const fault = faultText(address, error)
        if (isHopeless(fault)) throw new Error(fault)
      }
    }
    await setTimeout(AGAIN_MS)
  }
}

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
    const primary = this.#owners[hashSlot(SERVICE_TAG)]
    return primary === undefined ? [] : [primary]
  }

  shardOf(channel: string): Shard {
    const primary = this.#owners[hashSlot(hashTag(channel))]
    if (primary === undefined) throw new EngineError('no server of the cluster has the slot')
    return primary
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
    const isSame = owners.every((primary, slot) => primary === this.#owners[slot])
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
    for (let tag = 0; tag < SLOTS; tag++) if (this.#owners[hashSlot(String(tag))] === shard) return String(tag)
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
