import type { PresenceStatsResult } from 'centrifuge'
import { PublicationIterator } from './publication-iterator.js'
import type { RelayError } from './relay-error.js'
import type { SharedStream } from './shared-stream.js'
import type { StreamSubscriber } from './subscribers.js'
import type {
  ClientInfo,
  History,
  HistoryOptions,
  Publication,
  StreamPosition,
  SubscriptionEvents,
  SubscriptionState
} from './subscription-events.js'

/** All that the relay allows in one reply. */
export const ALL = -1

/** A handle of a subscription. Handles of one channel share one subscription; the last `unsubscribe` ends it. */
export class Subscription<Data = unknown> implements AsyncIterable<Publication<Data>> {
  readonly #shared: SharedStream
  readonly #release: () => void
  readonly #untilConnected: () => Promise<unknown>
  readonly #removers = new Set<() => void>()
  readonly #iterators = new Set<PublicationIterator<Publication<Data>>>()
  #isReleased = false

  constructor(shared: SharedStream, release: () => void, untilConnected: () => Promise<unknown>) {
    this.#shared = shared
    this.#release = release
    this.#untilConnected = untilConnected
  }

  get channel(): string {
    return this.#shared.channel
  }

  get state(): SubscriptionState {
    return this.#isReleased ? 'unsubscribed' : this.#shared.state
  }

  /** The last rejection or failed attempt; null while the subscription works. */
  get error(): RelayError | null {
    return this.#shared.error
  }

  /** The newest publication, also for a handle that was opened after it arrived; null before the first one. */
  get latest(): Publication<Data> | null {
    return this.#shared.latest as Publication<Data> | null // checked by `defineChannels`, or declared by the caller
  }

  /** For `recover`: behind the last publication that was delivered. Null if the relay does not recover the channel. */
  get position(): StreamPosition | null {
    return this.#shared.position
  }

  /** The data of the relay's reply, such as the granted `max_rate`; undefined for none. */
  get replyData(): unknown {
    return this.#shared.replyData
  }

  /** Returns a function that removes the listener. */
  on<Name extends keyof SubscriptionEvents>(
    name: Name,
    listener: (event: SubscriptionEvents<Data>[Name]) => void
  ): () => void {
    if (this.#isReleased) return () => undefined
    // TypeScript cannot relate the name to the type of its listeners through the table.
    const remove = this.#shared.events[name].add(listener as (event: unknown) => void)
    this.#removers.add(remove)
    return () => {
      this.#removers.delete(remove)
      remove()
    }
  }

  /** Publications from now on. Leaving the loop unsubscribes; a rejection is thrown. */
  [Symbol.asyncIterator](): AsyncIterableIterator<Publication<Data>, undefined> {
    const iterator = new PublicationIterator<Publication<Data>>(() => this.unsubscribe())
    const follow = (state: SubscriptionState): void => {
      if (state === 'unsubscribed') iterator.finish(this.error)
    }
    this.#iterators.add(iterator)
    this.on('publication', (publication) => iterator.push(publication))
    this.on('state', follow)
    follow(this.state)
    return iterator
  }

  /** Publishes, if the namespace allows it to clients. */
  async publish(data: Data): Promise<void> {
    await (await this.#connected()).publish(data)
  }

  /** The clients that are subscribed. */
  async presence(): Promise<readonly ClientInfo[]> {
    return Object.values((await (await this.#connected()).presence()).clients)
  }

  async presenceStats(): Promise<PresenceStatsResult> {
    return (await this.#connected()).presenceStats()
  }

  async history({ limit = ALL, ...options }: HistoryOptions = {}): Promise<History<Data>> {
    return (await this.#connected()).history({ limit, ...options })
  }

  async #connected(): Promise<StreamSubscriber> {
    await this.#untilConnected()
    return this.#shared.connected
  }

  /** Subscribes again with other data; for all handles of the channel. */
  setData(data: unknown): void {
    if (!this.#isReleased) this.#shared.setData(data)
  }

  /** The handle emits nothing more, and its iterators end. */
  unsubscribe(): void {
    if (this.#isReleased) return
    this.#isReleased = true
    for (const remove of this.#removers) remove()
    for (const iterator of this.#iterators) iterator.finish(null)
    this.#release()
  }
}
