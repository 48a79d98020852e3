import type { Shard } from './shard.js'

const RETRY_MS = 500

export interface TopicSubscriptionsDependencies {
  /** The servers that have a topic now. Throws if the hash slot has no server. */
  shardsOf(topic: string): readonly Shard[]
  mayHaveMissed(topic: string): void
}

/** The subscribed topics and their servers. Moves a subscription when its hash slot moves to another server. */
export class TopicSubscriptions {
  readonly #dependencies: TopicSubscriptionsDependencies
  readonly #shards = new Map<string, readonly Shard[]>()
  /** Topics that are not yet subscribed at the server that has them now. */
  readonly #moving = new Set<string>()
  #retryTimer: NodeJS.Timeout | null = null

  constructor(dependencies: TopicSubscriptionsDependencies) {
    this.#dependencies = dependencies
  }

  async subscribe(topic: string): Promise<void> {
    const shards = this.#dependencies.shardsOf(topic)
    this.#shards.set(topic, shards)
    await Promise.all(shards.map(({ subscriptions }) => subscriptions.subscribe(topic)))
  }

  unsubscribe(topic: string): void {
    for (const { subscriptions } of this.#shards.get(topic) ?? []) subscriptions.unsubscribe(topic)
    this.#shards.delete(topic)
    this.#moving.delete(topic)
  }

  /** Whether all servers of the topic have confirmed the subscription on their present connection. */
  isDelivering(topic: string): boolean {
    const shards = this.#shards.get(topic)
    if (shards === undefined || shards.length === 0 || this.#moving.has(topic)) return false
    return shards.every(({ subscriptions }) => subscriptions.isSubscribed(topic))
  }

  /** Called when hash slots have moved. */
  followSlots(): void {
    for (const [topic, shards] of this.#shards) {
      try {
        const current = this.#dependencies.shardsOf(topic)
        if (shards.length === current.length && shards.every((shard, index) => shard === current[index])) continue
        for (const shard of shards) if (!current.includes(shard)) shard.subscriptions.remove(topic)
        this.#shards.set(topic, current)
      } catch {
        // The slot has no server at the moment.
      }
      this.#moving.add(topic)
    }
    this.#subscribeMoving()
  }

  close(): void {
    if (this.#retryTimer !== null) clearTimeout(this.#retryTimer)
    this.#shards.clear()
    this.#moving.clear()
  }

  #subscribeMoving(): void {
    for (const topic of this.#moving) {
      this.#moving.delete(topic)
      this.subscribe(topic).then(
        () => this.#dependencies.mayHaveMissed(topic),
        () => {
          if (!this.#shards.has(topic)) return
          this.#moving.add(topic)
          this.#retryTimer ??= setTimeout(() => {
            this.#retryTimer = null
            this.#subscribeMoving()
          }, RETRY_MS).unref()
        }
      )
    }
  }
}
