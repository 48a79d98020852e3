import { Centrifuge, type Options } from 'centrifuge'
import type { Negotiation } from './negotiation.js'

export type ConnectionState =
  /** On its way, and nothing has gone wrong yet. */
  | 'connecting'
  | 'online'
  /** Cut off. It is tried again all the while, unless the service said no. */
  | 'offline'

export interface LinkWatch {
  state(state: ConnectionState): void
  publication(channel: string, data: unknown): void
  /** Publications were missed, and the relay no longer has them. */
  gap(channel: string): void
  /** The relay does not let this page listen to the channel. */
  refused(channel: string, code: number, reason: string): void
  /** The relay, or a refused token, ended it for good. */
  ended(code: number, reason: string): void
}

/** The client's own code for "nobody wanted it any longer". */
const CALLED_OFF = 0

/** For a connection that nobody waits for any longer. */
const NOBODY: LinkWatch = {
  state: () => undefined,
  publication: () => undefined,
  gap: () => undefined,
  refused: () => undefined,
  ended: () => undefined
}

/** One connection to the relay at one address, which comes back by itself when it breaks. */
export class Link {
  readonly #client: Centrifuge
  #watch: LinkWatch

  constructor(
    { url, token }: Negotiation,
    renewToken: () => Promise<string>,
    watch: LinkWatch,
    options: Partial<Options>
  ) {
    this.#watch = watch
    this.#client = new Centrifuge(url, { ...options, token, getToken: renewToken })
    this.#client.on('connected', () => this.#watch.state('online'))
    this.#client.on('connecting', () => this.#watch.state('connecting'))
    // An attempt failed: from here on a page should say so, though the next attempt is under way.
    this.#client.on('error', () => {
      if (this.#client.state === 'connecting') this.#watch.state('offline')
    })
    this.#client.on('disconnected', ({ code, reason }) => {
      this.#watch.state('offline')
      this.#watch.ended(code, reason)
    })
  }

  open(): void {
    this.#client.connect()
  }

  join(channel: string): void {
    const subscription = this.#client.newSubscription(channel)
    subscription.on('publication', ({ data }) => this.#watch.publication(channel, data))
    subscription.on('subscribed', ({ wasRecovering, recovered }) => {
      if (wasRecovering && !recovered) this.#watch.gap(channel)
    })
    subscription.on('unsubscribed', ({ code, reason }) => {
      if (code !== CALLED_OFF) this.#watch.refused(channel, code, reason)
    })
    subscription.subscribe()
  }

  leave(channel: string): void {
    this.#client.removeSubscription(this.#client.getSubscription(channel))
  }

  /** Says nothing more, not even that it ends. */
  close(): void {
    this.#watch = NOBODY
    this.#client.disconnect()
  }
}
