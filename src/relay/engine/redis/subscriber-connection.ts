import type { Redis } from 'ioredis'
import { toError } from '../../../shared/error-message.js'
import type { RedisAddress } from '../../../shared/redis-address.js'
import { reconnect, reconnectToMaster } from '../../../shared/sentinel-watch.js'
import { EngineError } from '../../core/engine.js'
import { chunks, WriteBatcher } from './batching.js'
import { disconnectedError, errorText, openConnection, sendCommand } from './connection.js'
import { topicSuffix } from './keys.js'

/** A client that reconnects at once, as after a page reload, finds its channel still subscribed. */
const UNSUBSCRIBE_DELAY_MS = 1_000
const MAX_TOPICS_PER_COMMAND = 512

export interface SubscriberConnectionDependencies {
  /** Whether to use SSUBSCRIBE and SUNSUBSCRIBE, as Redis Cluster does. */
  readonly usesShardedPubSub: boolean
  message(topic: string, message: string): void
  /** All topics are subscribed again after a connection loss. Messages sent meanwhile are lost. */
  restored(topics: readonly string[]): void
  lost(cause: Error): void
  /** In a Redis Cluster: topics of this server belong to another server now. */
  slotsMoved(): void
}

interface TopicSubscription {
  /** Settles when Redis has confirmed the subscription; null from then on. */
  pending: Promise<void> | null
}

interface PendingSubscribe {
  readonly topic: string
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

/** A server's connection for pub/sub subscriptions. */
export class SubscriberConnection {
  readonly #address: RedisAddress
  readonly #dependencies: SubscriberConnectionDependencies
  readonly #redis: Redis
  readonly #writes: WriteBatcher
  readonly #topicSuffix: string
  readonly #subscriptions = new Map<string, TopicSubscription>()
  /** Sent at the end of the event loop turn. */
  #pendingSubscribes: PendingSubscribe[] = []
  /** Topics to unsubscribe from when the delay is over. */
  readonly #unused = new Set<string>()
  #unsubscribeTimer: NodeJS.Timeout | null = null
  #isOpen = false
  #lastError: Error | null = null

  constructor(address: RedisAddress, dependencies: SubscriberConnectionDependencies) {
    this.#address = address
    this.#dependencies = dependencies
    this.#redis = openConnection(address, 'subscriptions')
    this.#writes = new WriteBatcher(this.#redis)
    this.#redis.on('ready', () => void this.#restore())
    this.#redis.on('close', () => this.#close())
    this.#redis.on('error', (error: Error) => {
      this.#lastError = error
      // While all sentinels are unreachable there is no connection that could close.
      if (!this.#isOpen) dependencies.lost(error)
    })
    this.#topicSuffix = topicSuffix(address.db)
    const messageEvent = dependencies.usesShardedPubSub ? 'smessage' : 'message'
    this.#redis.on(messageEvent, (topic: string, message: string) =>
      dependencies.message(topic.slice(0, topic.length - this.#topicSuffix.length), message)
    )
    this.#redis.on('moved', dependencies.slotsMoved)
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Whether Redis has confirmed the subscription on the present connection. */
  isSubscribed(topic: string): boolean {
    return this.#isOpen && this.#subscriptions.get(topic)?.pending === null
  }

  /** Fails while the connection is down, even if the topic will be restored. */
  async subscribe(topic: string): Promise<void> {
    if (!this.#isOpen) throw disconnectedError(this.#address)
    this.#unused.delete(topic)
    const known = this.#subscriptions.get(topic)
    if (known !== undefined) return known.pending ?? undefined
    const subscription: TopicSubscription = { pending: null }
    this.#subscriptions.set(topic, subscription)
    if (this.#pendingSubscribes.length === 0) setImmediate(() => this.#sendSubscribes())
    subscription.pending = new Promise<void>((resolve, reject) => {
      this.#pendingSubscribes.push({ topic, resolve, reject })
    }).then(
      () => {
        subscription.pending = null
      },
      (error: Error) => {
        if (this.#subscriptions.get(topic) === subscription) this.#subscriptions.delete(topic)
        throw new EngineError(errorText(this.#address, error))
      }
    )
    return subscription.pending
  }

  unsubscribe(topic: string): void {
    if (!this.#subscriptions.has(topic)) return
    this.#unused.add(topic)
    this.#unsubscribeTimer ??= setTimeout(() => this.#sendUnsubscribes(), UNSUBSCRIBE_DELAY_MS).unref()
  }

  /** Forgets a topic that another server has now. Redis Cluster has ended the subscription itself. */
  remove(topic: string): void {
    this.#subscriptions.delete(topic)
    this.#unused.delete(topic)
  }

  reconnect(): void {
    reconnect(this.#redis)
  }

  /** Sentinel reports this server as the master. */
  useMaster(host: string, port: number): void {
    reconnectToMaster(this.#redis, host, port)
  }

  close(): void {
    if (this.#unsubscribeTimer !== null) clearTimeout(this.#unsubscribeTimer)
    this.#redis.disconnect()
  }

  #sendSubscribes(): void {
    const pending = this.#pendingSubscribes
    this.#pendingSubscribes = []
    for (const batch of this.#batches(pending)) {
      this.#send(
        'subscribe',
        batch.map(({ topic }) => topic)
      ).then(
        () => {
          for (const { resolve } of batch) resolve()
        },
        (error: Error) => {
          if (isMoved(error)) this.#dependencies.slotsMoved()
          for (const { reject } of batch) reject(error)
        }
      )
    }
  }

  async #restore(): Promise<void> {
    for (const topic of this.#unused) this.remove(topic)
    // Pending subscriptions have failed with the old connection.
    const topics = [...this.#subscriptions].filter(([, { pending }]) => pending === null).map(([topic]) => topic)
    try {
      await Promise.all(this.#batches(topics).map((batch) => this.#send('subscribe', batch)))
      this.#isOpen = true
      this.#lastError = null
      this.#dependencies.restored(topics)
    } catch (error) {
      this.#lastError = toError(error)
      if (isMoved(this.#lastError)) this.#dependencies.slotsMoved()
      this.reconnect()
    }
  }

  #sendUnsubscribes(): void {
    this.#unsubscribeTimer = null
    const topics = [...this.#unused]
    for (const topic of topics) this.remove(topic)
    if (!this.#isOpen) return
    for (const batch of this.#batches(topics)) this.#send('unsubscribe', batch).catch(() => undefined)
  }

  #send(command: 'subscribe' | 'unsubscribe', topics: readonly string[]): Promise<unknown> {
    this.#writes.cork()
    const names = topics.map((topic) => topic + this.#topicSuffix)
    return sendCommand(this.#redis, this.#dependencies.usesShardedPubSub ? `s${command}` : command, names)
  }

  /** SSUBSCRIBE accepts topics of one hash slot only, so each topic is a command; all of them leave in one write. */
  #batches<T>(list: readonly T[]): (readonly T[])[] {
    return chunks(list, this.#dependencies.usesShardedPubSub ? 1 : MAX_TOPICS_PER_COMMAND)
  }

  #close(): void {
    this.#isOpen = false
    this.#dependencies.lost(this.#lastError ?? new Error('the connection was closed'))
    this.#lastError = null
  }
}

const isMoved = ({ message }: Error): boolean => /^(MOVED|CLUSTERDOWN)/.test(message)
