import { Centrifuge, type Options } from 'centrifuge'
import { VERSION } from '../version.js'
import type { Negotiation } from './negotiation.js'

export type ConnectionState =
  /** First attempt, before any failure. */
  | 'connecting'
  | 'online'
  /** Disconnected. The client keeps trying unless a `refused` event says otherwise. */
  | 'offline'

export interface ConnectionHandlers {
  state(state: ConnectionState): void
  /** Also the snapshot in the reply to a subscribe. */
  publication(channel: string, data: unknown): void
  subscribed(channel: string): void
  /** Publications were missed and cannot be recovered. */
  gap(channel: string): void
  /** The relay rejected the subscription. */
  rejected(channel: string, code: number, reason: string): void
  /** The relay closed the connection with a code after which the client does not reconnect, or rejected the token. */
  ended(code: number, reason: string): void
}

/** The client's own code for an unsubscribe call. */
const UNSUBSCRIBE_CALLED = 0

/** Name and version of the client on the operators' page and in the metrics of the relay. */
const IDENTITY: Partial<Options> = { name: 'gatehouse-client', version: VERSION }

/** For a closed connection. */
const NO_HANDLERS: ConnectionHandlers = {
  state: () => undefined,
  publication: () => undefined,
  subscribed: () => undefined,
  gap: () => undefined,
  rejected: () => undefined,
  ended: () => undefined
}

/** A call through the relay failed: with the code of the backend, of the relay, or of the official client (up to 99). */
export class RpcError extends Error {
  override readonly name = 'RpcError'
  readonly code: number
  /** Whether the same call may succeed later. */
  readonly temporary: boolean

  constructor({ code = 0, message = '', temporary = true }: Partial<RpcError>) {
    super(message)
    this.code = code
    this.temporary = temporary
  }
}

/** A connection to the relay at one address. It reconnects automatically. */
export class RelayConnection {
  readonly #client: Centrifuge
  #handlers: ConnectionHandlers

  constructor(
    { url, token }: Negotiation,
    renewToken: () => Promise<string>,
    handlers: ConnectionHandlers,
    options: Partial<Options>
  ) {
    this.#handlers = handlers
    this.#client = new Centrifuge(url, { ...IDENTITY, ...options, token, getToken: renewToken })
    this.#client.on('connected', () => this.#handlers.state('online'))
    this.#client.on('connecting', () => this.#handlers.state('connecting'))
    // An attempt failed: report it, although the next attempt has started.
    this.#client.on('error', () => {
      if (this.#client.state === 'connecting') this.#handlers.state('offline')
    })
    this.#client.on('disconnected', ({ code, reason }) => {
      this.#handlers.state('offline')
      this.#handlers.ended(code, reason)
    })
  }

  open(): void {
    this.#client.connect()
  }

  subscribe(channel: string): void {
    const subscription = this.#client.newSubscription(channel)
    subscription.on('publication', ({ data }) => this.#handlers.publication(channel, data))
    subscription.on('subscribed', ({ wasRecovering, recovered }) => {
      this.#handlers.subscribed(channel)
      if (wasRecovering && !recovered) this.#handlers.gap(channel)
    })
    subscription.on('unsubscribed', ({ code, reason }) => {
      if (code !== UNSUBSCRIBE_CALLED) this.#handlers.rejected(channel, code, reason)
    })
    subscription.subscribe()
  }

  /** After a rejection. Has no effect if the channel was released meanwhile. */
  resubscribe(channel: string): void {
    this.#client.getSubscription(channel)?.subscribe()
  }

  unsubscribe(channel: string): void {
    this.#client.removeSubscription(this.#client.getSubscription(channel))
  }

  /** Rejects with an `RpcError`. */
  async rpc(method: string, data: unknown): Promise<unknown> {
    try {
      return (await this.#client.rpc(method, data)).data
    } catch (error) {
      // The official client rejects with an object of this shape.
      throw new RpcError(error as Partial<RpcError>)
    }
  }

  /** Calls no more handlers. */
  close(): void {
    this.#handlers = NO_HANDLERS
    this.#client.disconnect()
  }
}
