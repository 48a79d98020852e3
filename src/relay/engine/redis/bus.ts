import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import type { MaybePromise, Position } from '../../core/broker.js'
import { EngineError } from '../../core/broker.js'
import type { Log } from '../../core/relay.js'
import type { EngineMetrics } from '../engine.js'
import type { RedisAddress } from './address.js'
import { type BroadcastBody, type BroadcastTarget, broadcastAt, byShard } from './broadcast.js'
import { Moved } from './command-link.js'
import type { StoredPublication } from './engine.js'
import { Ledger } from './ledger.js'
import type { RedisNames } from './names.js'
import type { Script } from './scripts.js'
import { Shard } from './shard.js'
import { Topics } from './topics.js'
import type { OpenShard, Placement } from './topology.js'
import { ClusterServers, IndependentServers, isClusterAt } from './topology.js'

const LOOK_MS = 20
const LEDGER = 'ledger'
/** What no waiting mends. */
const NON_RETRYABLE = /WRONGPASS|NOAUTH|NOPERM|DB index|certificate|CERT_|SSL routines/i

export interface RedisBusDependencies {
  readonly addresses: readonly RedisAddress[]
  readonly names: RedisNames
  readonly log: Log
  readonly watch: EngineMetrics
  /** How long the servers may take to be there at the start. */
  readonly startWithinMs: number
}

export interface MessageListener {
  /** False for a message that is not of our making. */
  message(channel: string, message: string): boolean
  mayHaveMissed(channel: string): void
  /** How far the channels that are listened to have been delivered. */
  positions(): Iterable<readonly [channel: string, position: Position]>
}

export interface ChannelTarget extends BroadcastTarget {
  readonly channel: string
}

/** All servers as one: finds the one that keeps a channel, and again where it has moved. */
export class RedisBus {
  readonly names: RedisNames
  readonly #parts: RedisBusDependencies
  readonly #id = randomUUID()
  readonly #topics: Topics
  #placement: Placement | null = null
  #ledgerKeys: readonly string[] = []
  #listener: MessageListener | null = null
  readonly #services = new Map<string, (message: string) => void>()
  readonly #changed = new Set<() => void>()

  constructor(parts: RedisBusDependencies) {
    this.names = parts.names
    this.#parts = parts
    this.#topics = new Topics({
      shardsOf: (name) => this.#shardsOf(name),
      mayHaveMissed: (name) => this.#mayHaveMissed(name)
    })
  }

  /** For scripts that read or write streams; none in a cluster. */
  get ledgerKeys(): readonly string[] {
    return this.#ledgerKeys
  }

  get isReady(): boolean {
    return this.#placement?.isReady ?? false
  }

  /** Called once, before `start`. */
  listen(listener: MessageListener): void {
    this.#listener = listener
  }

  /** Called whenever a server has come back, or has gone. */
  whenChanged(then: () => void): void {
    this.#changed.add(then)
  }

  /** Settles when all servers are there; fails when they are not within a while, or never will be. */
  async start(): Promise<void> {
    const { addresses, startWithinMs } = this.#parts
    const deadline = performance.now() + startWithinMs
    const isCluster = await isClusterAt(addresses, (fault) => NON_RETRYABLE.test(fault) || performance.now() > deadline)
    const placement: Placement = isCluster
      ? new ClusterServers(addresses, this.#openShard, () => this.#topics.follow())
      : new IndependentServers(addresses, this.#openShard)
    this.#placement = placement
    this.#ledgerKeys = isCluster ? [] : [this.names.service(LEDGER)]
    while (!placement.isReady) {
      if (NON_RETRYABLE.test(placement.fault) || performance.now() > deadline) {
        const { fault } = placement
        this.close()
        throw new Error(fault)
      }
      await setTimeout(LOOK_MS)
    }
  }

  subscribe(channel: string): MaybePromise<void> {
    return this.#topics.subscribe(this.names.channel(channel))
  }

  unsubscribe(channel: string): void {
    this.#topics.unsubscribe(this.names.channel(channel))
  }

  isDelivering(channel: string): boolean {
    return this.#topics.isDelivering(this.names.channel(channel))
  }

  /** Of the shard that the channel is on depends with what. */
  async runScript(
    channel: string,
    script: Script,
    keys: readonly string[],
    args: (shard: Shard) => readonly string[]
  ): Promise<unknown> {
    return this.#at(channel, (shard) => shard.commands.runScript(script, keys, args(shard)))
  }

  publishKept(channel: string, channelArguments: readonly string[], publication: StoredPublication): Promise<string> {
    const name = this.names.channel(channel)
    return this.#at(channel, ({ commands }) => commands.publishKept(name, channelArguments, publication))
  }

  /** One publication on many channels, sent once to each server; an answer for each channel, in their order. */
  async publishToMany(
    targets: readonly ChannelTarget[],
    body: BroadcastBody
  ): Promise<readonly (string | EngineError)[]> {
    const answers: (string | EngineError)[] = []
    const shardOf = (channel: string): Shard => this.#shardOf(channel)
    const channels = targets.map(({ channel }) => channel)
    const shards = await byShard(channels, shardOf, (index, fault) => (answers[index] = fault))
    const publishAt = async ([shard, indexes]: readonly [Shard, readonly number[]]): Promise<void> => {
      const here = indexes.map((index) => targets[index] as ChannelTarget)
      const known = await broadcastAt(shard, here, body)
      for (const [at, index] of indexes.entries()) answers[index] = known[at] as string | EngineError
    }
    await Promise.all([...shards].map(publishAt))
    return answers
  }

  send(channel: string, command: string, args: readonly string[]): Promise<unknown> {
    return this.#at(channel, ({ commands }) => commands.send(command, args))
  }

  publish(channel: string, message: string): Promise<unknown> {
    const name = this.names.channel(channel)
    return this.#at(channel, (shard) => shard.publish(name, message))
  }

  /** Listens to what nodes tell each other. */
  listenToService(service: string, listener: (message: string) => void): MaybePromise<void> {
    const name = this.names.service(service)
    this.#services.set(name, listener)
    return this.#topics.subscribe(name)
  }

  /** Whether this node can tell the others something; it may be deaf itself. */
  get canReachServices(): boolean {
    return this.serviceShards.some(({ commands }) => commands.isOpen)
  }

  /** The servers that keep what is about all nodes; none while nobody knows which one does. */
  get serviceShards(): readonly Shard[] {
    return this.#placement?.serviceShards ?? []
  }

  /** Runs a script on one of them. Its keys are names of services. */
  async runServiceScript(
    shard: Shard,
    script: Script,
    services: readonly string[],
    args: readonly string[]
  ): Promise<unknown> {
    const keys = services.map((service) => this.names.service(service))
    try {
      return await shard.commands.runScript(script, keys, args)
    } catch (error) {
      if (error instanceof Moved) void this.#placement?.refresh()
      throw error
    }
  }

  async publishToService(service: string, message: string): Promise<void> {
    const shards = this.serviceShards
    const shard = shards.find(({ isReady }) => isReady) ?? shards.find(({ commands }) => commands.isOpen)
    if (shard === undefined) throw new EngineError('no Redis is there')
    await shard.publish(this.names.service(service), message)
  }

  /** Something came that no relay of ours sent. */
  malformedMessage(): void {
    this.#parts.watch.engineMalformedMessage()
  }

  close(): void {
    this.#listener = null
    this.#topics.close()
    this.#placement?.close()
  }

  async #at<T>(channel: string, work: (shard: Shard) => Promise<T>): Promise<T> {
    try {
      return await work(this.#shardOf(channel))
    } catch (error) {
      if (!(error instanceof Moved)) throw error
      await this.#placement?.refresh()
      return work(this.#shardOf(channel))
    }
  }

  #shardOf(channel: string): Shard {
    if (this.#placement === null) throw new EngineError('the engine has not been started')
    return this.#placement.shardOf(channel)
  }

  #shardsOf(name: string): readonly Shard[] {
    if (this.#placement === null) return []
    const channel = this.names.channelOf(name)
    return channel === null ? this.#placement.serviceShards : [this.#placement.shardOf(channel)]
  }

  #mayHaveMissed(name: string): void {
    const channel = this.names.channelOf(name)
    if (channel !== null) this.#listener?.mayHaveMissed(channel)
  }

  readonly #openShard: OpenShard = (address, isSharded, pulseTag) => {
    const positions = (): Iterable<readonly [string, Position]> => this.#positionsAt(shard)
    const ledger = new Ledger({ key: this.names.service(LEDGER), node: this.#id, positions })
    const shard: Shard = new Shard({
      address,
      isSharded,
      ledger: isSharded ? null : ledger,
      log: this.#parts.log,
      watch: this.#parts.watch,
      pulseName: () => {
        const tag = pulseTag()
        return tag === null ? null : this.names.service(`pulse:${this.#id}`, tag)
      },
      message: (name, message) => this.#hear(name, message),
      restored: (names) => {
        for (const name of names) this.#mayHaveMissed(name)
      },
      moved: () => void this.#placement?.refresh(),
      changed: () => {
        for (const then of this.#changed) then()
      }
    })
    return shard
  };

  *#positionsAt(shard: Shard): Iterable<readonly [key: string, position: Position]> {
    for (const [channel, position] of this.#listener?.positions() ?? []) {
      if (this.#placement?.shardOf(channel) === shard) yield [`${this.names.channel(channel)}place`, position]
    }
  }

  #hear(name: string, message: string): void {
    const channel = this.names.channelOf(name)
    if (channel === null) this.#services.get(name)?.(message)
    else if (this.#listener !== null && !this.#listener.message(channel, message)) this.malformedMessage()
  }
}
