import type { MaybePromise } from '../../core/broker.js'
import type { Shard } from './shard.js'

export interface TopicsParts {
  /** Where a name belongs now. Throws where nobody knows. */
  shardsOf(name: string): readonly Shard[]
  mayHaveMissed(name: string): void
}

const FOLLOW_MS = 500

/** What is listened to, and at which servers; it follows names that move to others. */
export class Topics {
  readonly #parts: TopicsParts
  readonly #topics = new Map<string, readonly Shard[]>()
  /** Names that could not be subscribed where they are now. */
  readonly #unsettled = new Set<string>()
  #retry: NodeJS.Timeout | null = null

  constructor(parts: TopicsParts) {
    this.#parts = parts
  }

  subscribe(name: string): MaybePromise<void> {
    let shards: readonly Shard[]
    try {
      shards = this.#parts.shardsOf(name)
    } catch (error) {
      return Promise.reject(error)
    }
    this.#topics.set(name, shards)
    const waiting = shards
      .map(({ subscriptions }) => subscriptions.subscribe(name))
      .filter((each) => each !== undefined)
    return waiting.length === 0 ? undefined : Promise.all(waiting).then(() => undefined)
  }

  unsubscribe(name: string): void {
    for (const { subscriptions } of this.#topics.get(name) ?? []) subscriptions.unsubscribe(name)
    this.#topics.delete(name)
    this.#unsettled.delete(name)
  }

  /** Whether all its servers have confirmed the subscription, and their connections are up. */
  isDelivering(name: string): boolean {
    const shards = this.#topics.get(name)
    if (shards === undefined || shards.length === 0 || this.#unsettled.has(name)) return false
    return shards.every(({ subscriptions }) => subscriptions.isSubscribed(name))
  }

  /** Who keeps what has changed. */
  follow(): void {
    for (const [name, shards] of this.#topics) {
      try {
        const now = this.#parts.shardsOf(name)
        if (shards.length === now.length && shards.every((shard, index) => shard === now[index])) continue
        for (const shard of shards) if (!now.includes(shard)) shard.subscriptions.forget(name)
        this.#topics.set(name, now)
      } catch {
        // Nobody has it at the moment.
      }
      this.#unsettled.add(name)
    }
    this.#settle()
  }

  close(): void {
    if (this.#retry !== null) clearTimeout(this.#retry)
    this.#topics.clear()
    this.#unsettled.clear()
  }

  #settle(): void {
    for (const name of this.#unsettled) {
      this.#unsettled.delete(name)
      void Promise.resolve(this.subscribe(name)).then(
        () => this.#parts.mayHaveMissed(name),
        () => {
          if (!this.#topics.has(name)) return
          this.#unsettled.add(name)
          this.#retry ??= setTimeout(() => {
            this.#retry = null
            this.#settle()
          }, FOLLOW_MS).unref()
        }
      )
    }
  }
}
