import { setTimeout } from 'node:timers/promises'
import { addressName, type RedisAddress, type RedisServer } from '../../../shared/redis-address.js'
import { EngineError } from '../../core/engine.js'
import { errorText, listReply, openConnection, parseServerInfo, sendCommand } from './connection.js'
import { CONTROL_TAG, channelSlot, HASH_SLOTS, tagSlot } from './keys.js'
import type { Shard } from './shard.js'

/** Assigns channels to Redis servers. */
export interface Topology {
  /** All servers that have channels. */
  readonly shards: readonly Shard[]
  /** Throws `EngineError` if no server has the channel's hash slot. */
  shardOf(channel: string): Shard
  /** The server with this host and port in Redis Cluster, as `host:port`. Undefined for a server without hash slots. */
  shardAt(hostAndPort: string): Shard | undefined
  /** The servers whose control topics are subscribed. A control message is published to the first that is ready. */
  readonly controlShards: readonly Shard[]
  /** Whether all servers are ready. */
  readonly isReady: boolean
  /** Why it is not ready. */
  readonly error: string
  /** Reads the slot table again. */
  refresh(): Promise<void>
  close(): void
}

/** `heartbeatTag`: a hash tag whose slot this server has. */
export type OpenShard = (address: RedisAddress, usesShardedPubSub: boolean, heartbeatTag: () => string | null) => Shard

/** With 160 points per server the shares of the servers differ by about a tenth. */
const POINTS_PER_SERVER = 160

/**
 * Consistent hashing: adding or removing one of n servers moves one channel in n. It depends on the names of the servers only,
 * not on the order in which a relay lists them.
 */
export class HashRing<T extends { readonly name: string }> {
  readonly #points: readonly { readonly hash: number; readonly server: T }[]

  constructor(servers: readonly T[]) {
    this.#points = servers
      .flatMap((server) =>
        Array.from({ length: POINTS_PER_SERVER }, (_, index) => ({ hash: hashOf(`${server.name}#${index}`), server }))
      )
      .sort((a, b) => a.hash - b.hash || (a.server.name < b.server.name ? -1 : 1))
  }

  /** The server of the first point at or after the hash of the name; after the last point follows the first. */
  serverOf(name: string): T {
    const hash = hashOf(name)
    let low = 0
    let high = this.#points.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const point = this.#points[middle]
      if (point !== undefined && point.hash < hash) low = middle + 1
      else high = middle
    }
    const point = this.#points[low % this.#points.length]
    if (point === undefined) throw new EngineError('no Redis server is configured')
    return point.server
  }
}

/** FNV-1a with a final mix, because names that differ only in their last character would get neighbouring hashes. */
const hashOf = (text: string): number => {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

/** One Redis server, or several independent servers, each with its share of the channels. */
export class StandaloneTopology implements Topology {
  readonly controlShards: readonly Shard[]
  readonly #ring: HashRing<Shard>
  readonly #onlyShard: Shard | null

  constructor(addresses: readonly RedisAddress[], open: OpenShard) {
    this.controlShards = addresses.map((address) => open(address, false, () => CONTROL_TAG))
    this.#ring = new HashRing(this.controlShards)
    const [first, ...others] = this.controlShards
    this.#onlyShard = first !== undefined && others.length === 0 ? first : null
  }

  get shards(): readonly Shard[] {
    return this.controlShards
  }

  get isReady(): boolean {
    return this.controlShards.every(({ isReady }) => isReady)
  }

  get error(): string {
    const unready = this.controlShards.find(({ isReady }) => !isReady)
    return unready === undefined ? '' : errorText(unready.address, unready.error ?? new Error('no answer'))
  }

  shardOf(channel: string): Shard {
    return this.#onlyShard ?? this.#ring.serverOf(channel)
  }

  shardAt(): undefined {
    return undefined
  }

  async refresh(): Promise<void> {}

  close(): void {
    for (const shard of this.controlShards) shard.close()
  }
}

const DISCOVERY_RETRY_MS = 200

/** Sends one command over a connection of its own. */
const sendOnce = async (address: RedisServer, name: string, args: readonly string[]): Promise<unknown> => {
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
    return await sendCommand(redis, name, args)
  } finally {
    redis.disconnect()
  }
}

/** Whether the first server that responds belongs to a Redis Cluster. Throws an error for which `isFinal` is true. */
export const isRedisCluster = async (
  addresses: readonly RedisServer[],
  isFinal: (error: string) => boolean
): Promise<boolean> => {
  for (;;) {
    for (const address of addresses) {
      try {
        return parseServerInfo(String(await sendOnce(address, 'info', []))).isRedisCluster
      } catch (error) {
        const text = errorText(address, error)
        if (isFinal(text)) throw new Error(text)
      }
    }
    await setTimeout(DISCOVERY_RETRY_MS)
  }
}

/** How often the slot table is read while the Redis Cluster is not ready, and while it is. */
const REFRESH_MS = 500
const REFRESH_WHEN_READY_MS = 10_000

/** The masters of one Redis Cluster. A channel belongs to the server that has its hash slot. */
export class RedisClusterTopology implements Topology {
  readonly #seeds: readonly RedisServer[]
  readonly #open: OpenShard
  readonly #slotsMoved: () => void
  readonly #shards = new Map<string, Shard>()
  /** The server of each hash slot. */
  #slots: (Shard | undefined)[] = []
  #refreshing: Promise<void> | null = null
  #refreshedAt = 0
  #isClosed = false
  #error = 'the Redis Cluster has not answered'
  readonly #refreshTimer: NodeJS.Timeout

  constructor(seeds: readonly RedisServer[], open: OpenShard, slotsMoved: () => void) {
    this.#seeds = seeds
    this.#open = open
    this.#slotsMoved = slotsMoved
    this.#refreshTimer = setInterval(() => {
      if (!this.isReady || performance.now() - this.#refreshedAt > REFRESH_WHEN_READY_MS) void this.refresh()
    }, REFRESH_MS).unref()
    void this.refresh()
  }

  get isReady(): boolean {
    if (this.#slots.length !== HASH_SLOTS || this.#slots.includes(undefined)) return false
    for (const shard of this.#shards.values()) if (!shard.isReady) return false
    return true
  }

  get error(): string {
    for (const { isReady, address, error } of this.#shards.values()) {
      if (!isReady && error !== null) return errorText(address, error)
    }
    return this.#error
  }

  get shards(): readonly Shard[] {
    return [...this.#shards.values()]
  }

  get controlShards(): readonly Shard[] {
    const shard = this.#slots[tagSlot(CONTROL_TAG)]
    return shard === undefined ? [] : [shard]
  }

  shardOf(channel: string): Shard {
    const shard = this.#slots[channelSlot(channel)]
    if (shard === undefined) throw new EngineError('no server of the Redis Cluster has the slot')
    return shard
  }

  shardAt(hostAndPort: string): Shard | undefined {
    return this.#shards.get(hostAndPort)
  }

  /** Concurrent calls share one refresh. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#readSlotTable().finally(() => {
      this.#refreshing = null
    })
    return this.#refreshing
  }

  close(): void {
    this.#isClosed = true
    clearInterval(this.#refreshTimer)
    for (const shard of this.#shards.values()) shard.close()
    this.#shards.clear()
  }

  async #readSlotTable(): Promise<void> {
    this.#refreshedAt = performance.now()
    const known = [...this.#shards.values()]
      .sort((a, b) => Number(b.isReady) - Number(a.isReady))
      .map(({ address }) => address)
      .filter((address) => address.kind === 'server')
    for (const address of [...known, ...this.#seeds]) {
      try {
        const slots = parseSlotTable(await sendOnce(address, 'cluster', ['SLOTS']), address)
        // Closed meanwhile: nothing would close the shards that are opened now.
        if (!this.#isClosed) this.#assignSlots(slots)
        return
      } catch (error) {
        this.#error = errorText(address, error)
      }
    }
  }

  #assignSlots(ranges: readonly SlotRange[]): void {
    const slots: (Shard | undefined)[] = new Array(HASH_SLOTS).fill(undefined)
    for (const { from, to, address } of ranges) slots.fill(this.#openedShard(address), from, to + 1)
    const isUnchanged = slots.every((shard, slot) => shard === this.#slots[slot])
    this.#slots = slots
    if (isUnchanged) return
    // Subscriptions move to other servers before the servers without slots are closed.
    this.#slotsMoved()
    const used = new Set(slots)
    for (const [name, shard] of this.#shards) {
      if (used.has(shard)) continue
      this.#shards.delete(name)
      shard.close()
    }
  }

  #openedShard(address: RedisServer): Shard {
    const name = addressName(address)
    const known = this.#shards.get(name)
    if (known !== undefined) return known
    const shard: Shard = this.#open(address, true, () => this.#hashTagOf(shard))
    this.#shards.set(name, shard)
    return shard
  }

  /** Any hash tag whose slot this server has. */
  #hashTagOf(shard: Shard): string | null {
    for (let tag = 0; tag < HASH_SLOTS; tag++) if (this.#slots[tagSlot(String(tag))] === shard) return String(tag)
    return null
  }
}

interface SlotRange {
  readonly from: number
  readonly to: number
  readonly address: RedisServer
}

/** Reply of CLUSTER SLOTS: ranges, each followed by its master as host and port; replicas come after it. */
const parseSlotTable = (reply: unknown, source: RedisServer): readonly SlotRange[] =>
  listReply(reply).map((range) => {
    const [from, to, master] = listReply(range)
    const [host, port] = listReply(master)
    // All servers have the same credentials. A server that does not know its own host name has the one that was used to reach it.
    const address = {
      ...source,
      host: typeof host === 'string' && host !== '' ? host : source.host,
      port: Number(port)
    }
    return { from: Number(from), to: Number(to), address }
  })
