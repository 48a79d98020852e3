import { ReferenceCounts } from './reference-counts.js'
import type { RelayConnection } from './relay-connection.js'

/** A channel as it is subscribed to. All its handles share it. */
export interface SharedChannel {
  /** The kind of channel and the options of the subscription, which all handles have in common. */
  readonly options: object
  /** Subscribes on a new connection. */
  open(connection: RelayConnection): void
  /** There is no connection. */
  disconnect(): void
  /** Forgets everything that was received, because the user has changed. */
  reset(): void
  /** Another handle is opened, whose options differ in `joinLeave` at most. */
  shareWith?(options: { readonly joinLeave?: boolean }): void
  /** Subscribes again after a rejection. */
  retry(): void
  end(): void
}

/** The channels with at least one handle. They are subscribed to again on every new connection. */
export class SharedChannels {
  readonly #channels = new Map<string, SharedChannel>()
  readonly #references = new ReferenceCounts(
    () => undefined,
    (channel) => {
      this.#channels.get(channel)?.end()
      this.#channels.delete(channel)
    }
  )
  #connection: RelayConnection | null = null

  get isEmpty(): boolean {
    return this.#channels.size === 0
  }

  /** Returns the shared channel and a function that releases it. Throws if the channel is open with other options. */
  acquire<Shared extends SharedChannel>(
    channel: string,
    create: () => Shared
  ): { readonly shared: Shared; readonly release: () => void } {
    const created = create()
    const known = this.#channels.get(channel)
    if (known !== undefined && identityOf(known.options) !== identityOf(created.options))
      throw new TypeError(`the channel ${channel} is open with other options`)
    // Equal options include the kind of channel.
    const shared = (known ?? created) as Shared
    if (known !== undefined) {
      known.shareWith?.(created.options)
      known.retry()
    } else {
      this.#channels.set(channel, created)
      if (this.#connection !== null) created.open(this.#connection)
    }
    return { shared, release: this.#references.acquire(channel) }
  }

  /** Null while there is no connection. */
  connect(connection: RelayConnection | null): void {
    this.#connection = connection
    for (const channel of this.#channels.values()) {
      channel.disconnect()
      if (connection !== null) channel.open(connection)
    }
  }

  reset(): void {
    for (const channel of this.#channels.values()) channel.reset()
  }

  /** Ends all channels; their handles are not usable any more. */
  end(): void {
    for (const channel of this.#channels.values()) channel.end()
    this.#channels.clear()
  }
}

/**
 * Functions count as equal: those of one channel return tokens for the same channel and user. A handle that ignores joins and
 * leaves can share a subscription that receives them.
 */
const identityOf = (options: object): string =>
  JSON.stringify(options, (name, value: unknown) => {
    if (name === 'joinLeave') return undefined
    if (typeof value === 'function') return 'function'
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)))
  })
