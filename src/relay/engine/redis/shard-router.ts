import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import type { Log } from '../../../shared/log.js'
import type { RedisAddress } from '../../../shared/redis-address.js'
import { EngineError, type EngineMetrics, type ProbeChannel } from '../../core/engine.js'
import type { Position } from '../../core/publication.js'
import { SlotError } from './connection.js'
import { DataLossDetector } from './data-loss-detector.js'
import { CONTROL, channelKey, type RedisKeys } from './keys.js'
import type { Script } from './lua-script.js'
import { Shard } from './shard.js'
import { type BroadcastBody, type BroadcastTarget, broadcastToShard, groupByShard } from './shard-broadcast.js'
import { TopicSubscriptions } from './topic-subscriptions.js'
import { isRedisCluster, type OpenShard, RedisClusterTopology, StandaloneTopology, type Topology } from './topology.js'

const START_POLL_MS = 20
/** Enough to find a server that has one of 16,384 hash slots, with a probability of 99.99 %. */
const MAX_PROBE_NAMES = 160_000
const SLOT_RETRY_MS = 50
const NON_RETRYABLE_ERRORS = /WRONGPASS|NOAUTH|NOPERM|DB index|certificate|CERT_|SSL routines/i

export interface ShardRouterDependencies {
  readonly addresses: readonly RedisAddress[]
  readonly keys: RedisKeys
  readonly log: Log
  readonly metrics: EngineMetrics
  /** How long the servers may take to become ready at start. */
  readonly startTimeoutMs: number
  /** How long a command waits for the migration of its hash slot in a Redis Cluster. */
  readonly slotTimeoutMs: number
}

export interface MessageListener {
  /** Returns false for a malformed message. */
  message(channel: string, message: string): boolean
  mayHaveMissed(channel: string): void
  /** The delivered positions of all subscribed channels. */
  positions(): Iterable<readonly [channel: string, position: Position]>
}

export interface ChannelTarget extends BroadcastTarget {
  readonly channel: string
}

/** Sends commands and subscriptions to the Redis server that has the channel, again after its hash slot has moved. */
export class ShardRouter {
  readonly keys: RedisKeys
  readonly #dependencies: ShardRouterDependencies
  readonly #id = randomUUID()
  readonly #subscriptions: TopicSubscriptions
  #topology: Topology | null = null
  #ledgerKeys: readonly string[] = []
  #listener: MessageListener | null = null
  readonly #controlListeners = new Map<string, (message: string) => void>()
  readonly #readinessListeners = new Set<() => void>()
  #probeChannels: (ProbeChannel & { readonly shard: Shard })[] = []

  constructor(dependencies: ShardRouterDependencies) {
    this.keys = dependencies.keys
    this.#dependencies = dependencies
    this.#subscriptions = new TopicSubscriptions({
      shardsOf: (topic) => this.#shardsOf(topic),
      mayHaveMissed: (topic) => this.#mayHaveMissed(topic)
    })
  }

  /** Additional keys of scripts that read or write streams. Empty in a Redis Cluster. */
  get ledgerKeys(): readonly string[] {
    return this.#ledgerKeys
  }

  /** Whether the servers are a Redis Cluster. */
  get isSlotted(): boolean {
    return this.#topology !== null && this.#ledgerKeys.length === 0
  }

  /** All servers that have channels. */
  get shards(): readonly Shard[] {
    return this.#topology?.shards ?? []
  }

  get isReady(): boolean {
    return this.#topology?.isReady ?? false
  }

  /** Called once, before `start`. */
  onMessages(listener: MessageListener): void {
    this.#listener = listener
  }

  /** Calls the listener each time a server becomes ready or is lost. */
  onReadinessChange(listener: () => void): void {
    this.#readinessListeners.add(listener)
  }

  /** Resolves when all servers are ready. Fails after the timeout, or at once for a non-retryable error. */
  async start(): Promise<void> {
    const { addresses, startTimeoutMs } = this.#dependencies
    const deadline = performance.now() + startTimeoutMs
    const isFinal = (error: string): boolean => NON_RETRYABLE_ERRORS.test(error) || performance.now() > deadline
    // A master that Sentinel names is never part of a Redis Cluster.
    const servers = addresses.filter((address) => address.kind === 'server')
    const isSlotted = servers.length > 0 && (await isRedisCluster(servers, isFinal))
    const topology: Topology = isSlotted
      ? new RedisClusterTopology(servers, this.#openShard, () => this.#subscriptions.followSlots())
      : new StandaloneTopology(addresses, this.#openShard)
    this.#topology = topology
    this.#ledgerKeys = isSlotted ? [] : [this.keys.control(CONTROL.ledger)]
    while (!topology.isReady) {
      const { error } = topology
      if (isFinal(error)) {
        this.close()
        throw new Error(error)
      }
      await setTimeout(START_POLL_MS)
    }
  }

  /** Finds a channel on each server by trying names that begin with `name`. Servers without channels are omitted. */
  channelOnEachShard(name: string): readonly ProbeChannel[] {
    const { shards } = this
    const known = this.#probeChannels.filter(
      ({ channel, shard }) => shards.includes(shard) && this.findShard(channel) === shard
    )
    const missing = new Set(shards)
    for (const { shard } of known) missing.delete(shard)
    for (let suffix = 0; missing.size > 0 && suffix < MAX_PROBE_NAMES; suffix++) {
      const channel = `${name}/${suffix}`
      const shard = this.findShard(channel)
      if (shard !== null && missing.delete(shard)) known.push({ channel, server: shard.name, shard })
    }
    this.#probeChannels = known
    return known
  }

  subscribe(channel: string): Promise<void> {
    return this.#subscriptions.subscribe(this.keys.channel(channel))
  }

  unsubscribe(channel: string): void {
    this.#subscriptions.unsubscribe(this.keys.channel(channel))
  }

  isDelivering(channel: string): boolean {
    return this.#subscriptions.isDelivering(this.keys.channel(channel))
  }

  /** The arguments may depend on the shard that has the channel. */
  async runScript(
    channel: string,
    script: Script,
    keys: readonly string[],
    args: (shard: Shard) => readonly string[]
  ): Promise<unknown> {
    return this.withShard(channel, (shard) => shard.commands.runScript(script, keys, args(shard)))
  }

  /** Sends one publication for many channels once to each server. Returns an outcome for each channel, in their order. */
  async publishToMany(
    targets: readonly ChannelTarget[],
    body: BroadcastBody
  ): Promise<readonly (string | EngineError)[]> {
    const outcomes: (string | EngineError)[] = []
    const shards = await groupByShard(
      targets,
      (channel) => this.#shardOf(channel),
      (index, error) => {
        outcomes[index] = error
      }
    )
    const publish = async ([shard, group]: readonly [Shard, ReadonlyMap<number, ChannelTarget>]): Promise<void> => {
      const indexes = [...group.keys()]
      for (const [at, outcome] of (await broadcastToShard(shard, [...group.values()], body)).entries()) {
        const index = indexes[at]
        if (index !== undefined) outcomes[index] = outcome
      }
    }
    await Promise.all([...shards].map(publish))
    return outcomes
  }

  send(channel: string, command: string, args: readonly string[]): Promise<unknown> {
    return this.withShard(channel, ({ commands }) => commands.send(command, args))
  }

  publish(channel: string, message: string): Promise<unknown> {
    const topic = this.keys.channel(channel)
    return this.withShard(channel, (shard) => shard.publish(topic, message))
  }

  /** Subscribes to messages between nodes. */
  subscribeControl(name: string, listener: (message: string) => void): Promise<void> {
    const topic = this.keys.control(name)
    this.#controlListeners.set(topic, listener)
    return this.#subscriptions.subscribe(topic)
  }

  /** Whether this node can send control messages. Its subscriptions may be down all the same. */
  get canPublishControl(): boolean {
    return this.controlShards.some(({ commands }) => commands.isOpen)
  }

  /** The servers with the control keys. Empty while the control hash slot has no server. */
  get controlShards(): readonly Shard[] {
    return this.#topology?.controlShards ?? []
  }

  /** The control shard of a channel: the server of the channel, or the one with the control hash slot in a Redis Cluster. */
  controlShardOf(channel: string): Shard {
    const [first] = this.controlShards
    const shard = this.#shardOf(channel)
    if (first === undefined) throw new EngineError('no server of the Redis Cluster has the control slot')
    return this.controlShards.includes(shard) ? shard : first
  }

  /** Runs a script on one of the control shards. */
  async runControlScript(
    shard: Shard,
    script: Script,
    names: readonly string[],
    args: readonly string[]
  ): Promise<unknown> {
    const keys = names.map((name) => this.keys.control(name))
    try {
      return await shard.commands.runScript(script, keys, args)
    } catch (error) {
      if (error instanceof SlotError) void this.#topology?.refresh()
      throw error
    }
  }

  async publishControl(name: string, message: string): Promise<void> {
    const shards = this.controlShards
    const shard = shards.find(({ isReady }) => isReady) ?? shards.find(({ commands }) => commands.isOpen)
    if (shard === undefined) throw new EngineError('no Redis server is connected')
    await shard.publish(this.keys.control(name), message)
  }

  /** Counts a message that no relay has sent. */
  malformedMessage(): void {
    this.#dependencies.metrics.engineMalformedMessage()
  }

  close(): void {
    this.#listener = null
    this.#subscriptions.close()
    this.#topology?.close()
  }

  /** Runs work at the server that has the channel, again after its hash slot has moved. */
  async withShard<T>(channel: string, work: (shard: Shard) => Promise<T>): Promise<T> {
    try {
      return await work(this.#shardOf(channel))
    } catch (error) {
      if (!(error instanceof SlotError)) throw error
      return this.#retryAtSlot(channel, work, error)
    }
  }

  /** Repeats work that Redis Cluster rejected because of its hash slot, until the migration of the slot has taken too long. */
  async #retryAtSlot<T>(channel: string, work: (shard: Shard) => Promise<T>, cause: SlotError): Promise<T> {
    const deadline = performance.now() + this.#dependencies.slotTimeoutMs
    for (let error = cause; ; ) {
      try {
        if (error.reason === 'moved') await this.#topology?.refresh()
        const importing = error.reason === 'importing' ? this.#topology?.shardAt(error.target) : undefined
        if (importing?.commands.isOpen) return await importing.commands.asking(() => work(importing))
        const shard = this.#shardOf(channel)
        // A server that has received its first slot may still be connecting.
        if (shard.commands.isOpen || performance.now() >= deadline) return await work(shard)
      } catch (next) {
        if (!(next instanceof SlotError) || performance.now() >= deadline) throw next
        error = next
      }
      await setTimeout(SLOT_RETRY_MS)
    }
  }

  #shardOf(channel: string): Shard {
    if (this.#topology === null) throw new EngineError('the engine has not been started')
    return this.#topology.shardOf(channel)
  }

  /** Null if no server has the channel's hash slot. */
  findShard(channel: string): Shard | null {
    try {
      return this.#shardOf(channel)
    } catch {
      return null
    }
  }

  #shardsOf(topic: string): readonly Shard[] {
    if (this.#topology === null) return []
    const channel = this.keys.channelOf(topic)
    return channel === null ? this.#topology.controlShards : [this.#topology.shardOf(channel)]
  }

  #mayHaveMissed(topic: string): void {
    const channel = this.keys.channelOf(topic)
    if (channel !== null) this.#listener?.mayHaveMissed(channel)
  }

  readonly #openShard: OpenShard = (address, usesShardedPubSub, heartbeatTag) => {
    const positions = (): Iterable<readonly [string, Position]> => this.#positionsOf(shard)
    const lossDetector = new DataLossDetector({
      ledgerKey: this.keys.control(CONTROL.ledger),
      node: this.#id,
      positions
    })
    const shard: Shard = new Shard({
      address,
      usesShardedPubSub,
      lossDetector: usesShardedPubSub ? null : lossDetector,
      log: this.#dependencies.log,
      metrics: this.#dependencies.metrics,
      heartbeatTopic: () => {
        const tag = heartbeatTag()
        return tag === null ? null : this.keys.control(CONTROL.heartbeatTopic(this.#id), tag)
      },
      message: (topic, message) => this.#receive(topic, message),
      restored: (topics) => {
        for (const topic of topics) this.#mayHaveMissed(topic)
      },
      slotsMoved: () => void this.#topology?.refresh(),
      readinessChanged: () => {
        for (const listener of this.#readinessListeners) listener()
      }
    })
    return shard
  };

  *#positionsOf(shard: Shard): Iterable<readonly [key: string, position: Position]> {
    for (const [channel, position] of this.#listener?.positions() ?? []) {
      if (this.#topology?.shardOf(channel) === shard)
        yield [channelKey(this.keys.channel(channel), 'position'), position]
    }
  }

  #receive(topic: string, message: string): void {
    const channel = this.keys.channelOf(topic)
    if (channel === null) this.#controlListeners.get(topic)?.(message)
    else if (this.#listener !== null && !this.#listener.message(channel, message)) this.malformedMessage()
  }
}
