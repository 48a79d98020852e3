import type { ResolvedChannel } from '../channel-names.js'
import type { SubscribeEventResult } from '../event-proxies.js'
import type { Subscription } from '../fan-out/subscription.js'
import type { TagFilter } from '../fan-out/tag-filter.js'
import type { View } from '../fan-out/view.js'
import type { MapOptions } from '../options.js'
import type { Position } from '../publication.js'
import type { Client } from './client.js'
import { removeSubscription } from './remove-subscription.js'

/** A client that loads a map. It has the channel reserved, and is authorised, from the first page until it is live. */
export interface MapLoading {
  readonly channel: string
  readonly resolved: ResolvedChannel
  readonly options: MapOptions
  readonly grant: SubscribeEventResult
  readonly filter: TagFilter | null
  /** The requested view; null for everything. */
  readonly view: View | null
  readonly delta: boolean
  readonly joinLeave: boolean
  /** Monotonic time at which the client is closed as too slow. */
  readonly deadlineMs: number
  /** Position of the first page; null before it. Everything after it comes from the stream. */
  frozen: Position | null
  /**
   * The key after which the next page starts; null after the last page. It decides, and not the cursor of the client: the SDK
   * continues with the pages of an attempt that it has given up, beside those of the next one.
   */
  next: string | null
  /** The end of the stream when the client began to catch up; null before that. */
  catchUpTo: number | null
  /**
   * Of a client without a position: it receives changes from the first page on. Null for other clients, which read the changes
   * from the stream and subscribe at the end.
   */
  subscription: Subscription | null
}

/** The maps that a client loads, by channel. */
export class MapLoadings {
  readonly #client: Client
  readonly #loadings = new Map<string, MapLoading>()

  constructor(client: Client) {
    this.#client = client
  }

  get size(): number {
    return this.#loadings.size
  }

  get(channel: string): MapLoading | undefined {
    return this.#loadings.get(channel)
  }

  get channels(): readonly string[] {
    return [...this.#loadings.keys()]
  }

  /** Monotonic time of the first deadline. */
  get nextDeadlineMs(): number {
    let next = Number.POSITIVE_INFINITY
    for (const { deadlineMs } of this.#loadings.values()) next = Math.min(next, deadlineMs)
    return next
  }

  add(loading: MapLoading): void {
    this.#loadings.set(loading.channel, loading)
    this.#client.deadlines.schedule()
  }

  /** Ends the reservation of a client that is live now. */
  finish({ channel }: MapLoading): void {
    this.#loadings.delete(channel)
    this.#client.deadlines.schedule()
  }

  /** Ends the reservation of a client that does not become live. */
  cancel(channel: string): void {
    const loading = this.#loadings.get(channel)
    if (loading === undefined) return
    this.finish(loading)
    if (loading.subscription !== null) removeSubscription(this.#client, loading.subscription)
  }

  cancelAll(): void {
    for (const channel of this.channels) this.cancel(channel)
  }
}
