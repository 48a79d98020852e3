import type { Log } from '../../../shared/log.js'
import { addressName, type RedisAddress } from '../../../shared/redis-address.js'
import { watchMaster } from '../../../shared/sentinel-watch.js'
import type { EngineMetrics } from '../../core/engine.js'
import { CommandConnection } from './command-connection.js'
import type { DataLossDetector } from './data-loss-detector.js'
import { topicSuffix } from './keys.js'
import { SubscriberConnection, type SubscriberConnectionDependencies } from './subscriber-connection.js'

const HEARTBEAT_MS = 1_000
/** A subscriber connection that misses this many heartbeats of its own node is closed and opened again. */
const MAX_MISSED_HEARTBEATS = 4
const ERROR_LOG_INTERVAL_MS = 10_000

export interface ShardDependencies
  extends Pick<SubscriberConnectionDependencies, 'usesShardedPubSub' | 'message' | 'restored' | 'slotsMoved'> {
  readonly address: RedisAddress
  readonly log: Log
  readonly metrics: EngineMetrics
  readonly lossDetector: DataLossDetector | null
  /** Topic of the messages that the shard sends to itself; null if no topic belongs to this server. */
  heartbeatTopic(): string | null
  /** The server became ready or was lost. */
  readinessChanged(): void
}

/** One Redis server: a connection for commands and one for subscriptions, both checked once a second. */
export class Shard {
  readonly name: string
  readonly address: RedisAddress
  readonly publishCommand: 'PUBLISH' | 'SPUBLISH'
  readonly topicSuffix: string
  readonly commands: CommandConnection
  readonly subscriptions: SubscriberConnection
  readonly #dependencies: ShardDependencies
  readonly #heartbeatTimer: NodeJS.Timeout
  readonly #stopWatching: (() => void) | null = null
  #heartbeatTopic: string | null = null
  /** Heartbeats accepted by Redis since one was received. Counted, not timed: the process itself may have been suspended. */
  #missedHeartbeats = 0
  #isReady = false
  #wasReady = false
  #isNewGeneration = false
  #errorLoggedAt = 0
  /** Why the server is not ready. */
  error: Error | null = null

  constructor(dependencies: ShardDependencies) {
    this.#dependencies = dependencies
    this.address = dependencies.address
    this.name = addressName(dependencies.address)
    this.publishCommand = dependencies.usesShardedPubSub ? 'SPUBLISH' : 'PUBLISH'
    this.topicSuffix = topicSuffix(dependencies.address.db)
    this.commands = new CommandConnection(dependencies.address, {
      publishCommand: this.publishCommand,
      topicSuffix: this.topicSuffix,
      lossDetector: dependencies.lossDetector,
      opened: (isNewGeneration) => {
        this.#isNewGeneration = isNewGeneration
        this.#checkReady()
      },
      lost: (cause) => this.#lost(cause),
      errorReply: (cause) => this.#errorReply(cause)
    })
    this.subscriptions = new SubscriberConnection(dependencies.address, {
      usesShardedPubSub: dependencies.usesShardedPubSub,
      message: (topic, message) => {
        if (topic === this.#heartbeatTopic) this.#missedHeartbeats = 0
        else dependencies.message(topic, message)
      },
      restored: (topics) => {
        this.#missedHeartbeats = 0
        dependencies.restored(topics)
        this.#checkReady()
      },
      lost: (cause) => this.#lost(cause),
      slotsMoved: dependencies.slotsMoved
    })
    const { address } = dependencies
    if (address.kind === 'sentinel')
      this.#stopWatching = watchMaster(address, (host, port) => {
        this.commands.useMaster(host, port)
        this.subscriptions.useMaster(host, port)
      })
    this.#heartbeatTimer = setInterval(() => this.#sendHeartbeat(), HEARTBEAT_MS).unref()
  }

  get isReady(): boolean {
    return this.#isReady
  }

  publish(topic: string, message: string): Promise<unknown> {
    return this.commands.send(this.publishCommand, [topic + this.topicSuffix, message])
  }

  close(): void {
    clearInterval(this.#heartbeatTimer)
    this.#stopWatching?.()
    this.#isReady = false
    this.#wasReady = false
    this.commands.close()
    this.subscriptions.close()
  }

  #checkReady(): void {
    if (this.#isReady || !this.commands.isOpen || !this.subscriptions.isOpen) return
    this.#isReady = true
    this.error = null
    // In a new generation all streams begin a new epoch.
    const areStreamsKept = !this.#isNewGeneration
    if (this.#wasReady) this.#dependencies.log.info({ redis: this.name, areStreamsKept }, 'Redis connection restored')
    this.#wasReady = true
    this.#sendHeartbeat()
    this.#dependencies.readinessChanged()
  }

  #lost(cause: Error): void {
    this.error = cause
    if (!this.#isReady) return
    this.#isReady = false
    this.#dependencies.metrics.engineLost()
    this.#dependencies.log.error({ redis: this.name, cause: cause.message }, 'Redis connection lost')
    this.#dependencies.readinessChanged()
  }

  #errorReply(cause: Error): void {
    this.#dependencies.metrics.engineError()
    const now = performance.now()
    if (this.#errorLoggedAt !== 0 && now - this.#errorLoggedAt < ERROR_LOG_INTERVAL_MS) return
    this.#errorLoggedAt = now
    this.#dependencies.log.error({ redis: this.name, cause: cause.message }, 'Redis error reply')
  }

  #sendHeartbeat(): void {
    if (!this.#isReady) return
    const topic = this.#dependencies.heartbeatTopic()
    if (topic !== this.#heartbeatTopic) {
      if (this.#heartbeatTopic !== null) this.subscriptions.unsubscribe(this.#heartbeatTopic)
      this.#heartbeatTopic = topic
      this.#missedHeartbeats = 0
    }
    if (topic === null) return
    // A failure shows as a missed heartbeat or as a lost connection.
    const ignore = (): void => undefined
    this.subscriptions.subscribe(topic).catch(ignore)
    this.commands.heartbeat(topic).then(() => this.#heartbeatSent(), ignore)
  }

  #heartbeatSent(): void {
    if (!this.#isReady || ++this.#missedHeartbeats < MAX_MISSED_HEARTBEATS) return
    this.#missedHeartbeats = 0
    this.#lost(new Error('subscriptions receive no messages'))
    this.subscriptions.reconnect()
  }
}
