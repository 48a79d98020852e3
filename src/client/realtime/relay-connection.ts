import { Centrifuge, type MapSubscription, type MapSubscriptionOptions, type Options } from 'centrifuge'
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
  /** `data` is that of the reply; undefined for none. */
  subscribed(channel: string, data: unknown): void
  /** Publications were missed and cannot be recovered. */
  gap(channel: string): void
  /** The relay rejected the subscription. */
  rejected(channel: string, code: number, reason: string): void
  /** The relay closed the connection with a code after which the client does not reconnect, or rejected the token. */
  ended(code: number, reason: string): void
}

/** Receives the events of a map subscription. */
export interface MapHandlers {
  /** The complete state, before `subscribed`. */
  sync(entries: readonly { readonly key: string; readonly data: unknown }[]): void
  update(key: string, data: unknown, isRemoved: boolean): void
  /** `data` is that of the reply; undefined for none. */
  subscribed(data: unknown): void
  /** The connection was lost. The subscription continues with the next one. */
  interrupted(): void
  rejected(): void
}

export interface MapSubscriber {
  publish(key: string, data: unknown): Promise<unknown>
  remove(key: string): Promise<unknown>
  /** Subscribes again with other data. */
  changeData(data: unknown): void
  close(): void
}

/** The client's own code for calls of subscribe and unsubscribe. */
const CALLED = 0

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

  subscribe(channel: string, data?: unknown): void {
    const subscription = this.#client.newSubscription(channel, { data })
    subscription.on('publication', ({ data }) => this.#handlers.publication(channel, data))
    subscription.on('subscribed', ({ wasRecovering, recovered, data }) => {
      this.#handlers.subscribed(channel, data)
      if (wasRecovering && !recovered) this.#handlers.gap(channel)
    })
    subscription.on('unsubscribed', ({ code, reason }) => {
      if (code !== CALLED) this.#handlers.rejected(channel, code, reason)
    })
    subscription.subscribe()
  }

  subscribeMap(
    channel: string,
    type: 'map' | 'map_clients' | 'map_users',
    options: MapSubscriptionOptions,
    handlers: MapHandlers
  ): MapSubscriber {
    let subscription = this.#openMap(channel, type, options, handlers)
    return {
      publish: (key, data) => failWithRpcError(() => subscription.publish(key, data)),
      remove: (key) => failWithRpcError(() => subscription.remove(key)),
      changeData: (data) => {
        this.unsubscribe(channel)
        subscription = this.#openMap(channel, type, { ...options, data }, handlers)
      },
      close: () => this.unsubscribe(channel)
    }
  }

  #openMap(
    channel: string,
    type: 'map' | 'map_clients' | 'map_users',
    options: MapSubscriptionOptions,
    handlers: MapHandlers
  ): MapSubscription {
    const subscription = this.#newMap(channel, type, options)
    let replyData: unknown
    const subscribed = (): void => {
      handlers.subscribed(replyData)
      this.#handlers.subscribed(channel, replyData)
    }
    subscription.on('subscribed', ({ recovered, data }) => {
      replyData = data
      if (recovered) subscribed()
    })
    // Without a recovery this follows the event "subscribed".
    subscription.on('sync', ({ entries }) => {
      handlers.sync(entries)
      subscribed()
    })
    subscription.on('update', (entry) => {
      if (entry.key !== undefined) handlers.update(entry.key, entry.data, entry.removed === true)
    })
    subscription.on('subscribing', ({ code }) => {
      if (code !== CALLED) handlers.interrupted()
    })
    subscription.on('unsubscribed', ({ code, reason }) => {
      if (code === CALLED) return
      handlers.rejected()
      this.#handlers.rejected(channel, code, reason)
    })
    subscription.subscribe()
    return subscription
  }

  #newMap(
    channel: string,
    type: 'map' | 'map_clients' | 'map_users',
    options: MapSubscriptionOptions
  ): MapSubscription {
    if (type === 'map_clients') return this.#client.newMapClientsSubscription(channel, options)
    if (type === 'map_users') return this.#client.newMapUsersSubscription(channel, options)
    return this.#client.newMapSubscription(channel, options)
  }

  /**
   * Subscribes again with other data, if the channel is subscribed to. A new subscription: the old one would take a pending
   * reply for its own, and would recover from an offset of other data.
   */
  changeData(channel: string, data: unknown): void {
    if (this.#client.getSubscription(channel) === null) return
    this.unsubscribe(channel)
    this.subscribe(channel, data)
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
    return (await failWithRpcError(() => this.#client.rpc(method, data))).data
  }

  /** Calls no more handlers. */
  close(): void {
    this.#handlers = NO_HANDLERS
    this.#client.disconnect()
  }
}

const failWithRpcError = async <Result>(call: () => Promise<Result>): Promise<Result> => {
  try {
    return await call()
  } catch (error) {
    // The official client rejects with an object of this shape.
    throw new RpcError(error as Partial<RpcError>)
  }
}
