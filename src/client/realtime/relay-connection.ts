import {
  Centrifuge,
  type ClientInfo,
  type HistoryOptions,
  type MapSubscription,
  type MapSubscriptionOptions,
  type Options,
  type PublicationContext,
  type StreamPosition,
  type SubscriptionOptions,
  type UnsubscribedContext
} from 'centrifuge'
import { VERSION } from '../version.js'
import type { Negotiation } from './negotiation.js'
import { RelayError, relayError } from './relay-error.js'
import { MapSubscriber, StreamSubscriber, withRelayError } from './subscribers.js'

export type ConnectionState =
  /** First attempt, before any failure. */
  | 'connecting'
  | 'online'
  /** Disconnected. The client keeps trying unless a `refused` event says otherwise. */
  | 'offline'

export interface ConnectionHandlers {
  /** With `offline`, the error of the attempt. */
  state(state: ConnectionState, error: RelayError | null): void
  subscribed(channel: string): void
  /** The relay rejected or ended the subscription. `isRetryable`: it should be tried again after a delay. */
  rejected(channel: string, error: RelayError, isRetryable: boolean): void
  /** The relay closed the connection with a code after which the client does not reconnect, or rejected the token. */
  ended(code: number, reason: string): void
}

/** Receives the events that streams and maps have in common. */
interface ChannelHandlers {
  /** The connection was lost, or the relay asks for a new subscription. It continues by itself. */
  subscribing(): void
  /** The relay rejected or ended the subscription. */
  rejected(error: RelayError, isRetryable: boolean): void
}

/** The reply to a subscription. */
export interface Subscribed {
  /** Undefined for none. */
  readonly data: unknown
  /** Null without recovery. */
  readonly position: StreamPosition | null
  /** The missed publications follow. */
  readonly isRecovered: boolean
  /** Publications were missed and cannot be recovered. */
  readonly isGap: boolean
}

/** Receives the events of a subscription to a stream. */
export interface StreamHandlers extends ChannelHandlers {
  /** Before the publications of the reply. */
  subscribed(reply: Subscribed): void
  publication(publication: PublicationContext): void
  join(info: ClientInfo): void
  leave(info: ClientInfo): void
  /** An attempt failed, or no token was received. The official client tries again. */
  failed(error: RelayError): void
}

/** Receives the events of a map subscription. */
export interface MapHandlers extends ChannelHandlers {
  /** The complete state, before `subscribed`. */
  sync(entries: readonly { readonly key: string; readonly data: unknown }[]): void
  update(key: string, data: unknown, isRemoved: boolean): void
  /** `data` is that of the reply; undefined for none. */
  subscribed(data: unknown): void
}

export type MapType = 'map' | 'map_clients' | 'map_users'

/** The client's own code for calls of subscribe and unsubscribe. */
const CALLED = 0

/** Limit exceeded, and unsubscribed by an operator. */
const RETRYABLE_UNSUBSCRIBES: ReadonlySet<number> = new Set([106, 2000])

/** Name and version of the client on the operators' page and in the metrics of the relay. */
const IDENTITY: Partial<Options> = { name: 'gatehouse-client', version: VERSION }

/** For a closed connection. */
const NO_HANDLERS: ConnectionHandlers = {
  state: () => undefined,
  subscribed: () => undefined,
  rejected: () => undefined,
  ended: () => undefined
}

/** A connection to the relay at one address. It reconnects automatically. Its calls reject with a `RelayError`. */
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
    this.#client.on('connected', () => this.#handlers.state('online', null))
    this.#client.on('connecting', () => this.#handlers.state('connecting', null))
    // An attempt failed: report it, although the next attempt has started.
    this.#client.on('error', ({ error }) => {
      if (this.#client.state === 'connecting') this.#handlers.state('offline', relayError(error))
    })
    this.#client.on('disconnected', ({ code, reason }) => {
      this.#handlers.state('offline', new RelayError({ code, message: reason, temporary: false }))
      this.#handlers.ended(code, reason)
    })
  }

  open(): void {
    this.#client.connect()
  }

  subscribe(channel: string, options: SubscriptionOptions, handlers: StreamHandlers): StreamSubscriber {
    const subscription = this.#client.newSubscription(channel, options)
    subscription.on('publication', (publication) => handlers.publication(publication))
    subscription.on('join', ({ info }) => handlers.join(info))
    subscription.on('leave', ({ info }) => handlers.leave(info))
    subscription.on('error', ({ error }) => handlers.failed(relayError({ ...error, temporary: true })))
    subscription.on('subscribing', ({ code }) => {
      if (code !== CALLED) handlers.subscribing()
    })
    subscription.on('subscribed', ({ wasRecovering, recovered, recoverable, streamPosition, data }) => {
      this.#handlers.subscribed(channel)
      const position = (recoverable && streamPosition) || null
      handlers.subscribed({ data, position, isRecovered: recovered, isGap: wasRecovering && !recovered })
    })
    subscription.on('unsubscribed', (context) => this.#unsubscribed(context, handlers))
    subscription.subscribe()
    return new StreamSubscriber(subscription, () => this.#client.removeSubscription(subscription))
  }

  subscribeMap(channel: string, type: MapType, options: MapSubscriptionOptions, handlers: MapHandlers): MapSubscriber {
    const subscription = this.#newMap(channel, type, options)
    let replyData: unknown
    const subscribed = (): void => {
      handlers.subscribed(replyData)
      this.#handlers.subscribed(channel)
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
      if (code !== CALLED) handlers.subscribing()
    })
    subscription.on('unsubscribed', (context) => this.#unsubscribed(context, handlers))
    subscription.subscribe()
    return new MapSubscriber(subscription, () => this.#client.removeMapSubscription(subscription))
  }

  #newMap(channel: string, type: MapType, options: MapSubscriptionOptions): MapSubscription {
    if (type === 'map_clients') return this.#client.newMapClientsSubscription(channel, options)
    if (type === 'map_users') return this.#client.newMapUsersSubscription(channel, options)
    return this.#client.newMapSubscription(channel, options)
  }

  #unsubscribed({ channel, code, reason }: UnsubscribedContext, handlers: ChannelHandlers): void {
    if (code === CALLED) return
    const isRetryable = RETRYABLE_UNSUBSCRIBES.has(code)
    const error = new RelayError({ code, message: reason, temporary: isRetryable })
    handlers.rejected(error, isRetryable)
    this.#handlers.rejected(channel, error, isRetryable)
  }

  /** After a rejection. Has no effect if the channel was released meanwhile. */
  resubscribe(channel: string): void {
    this.#client.getSubscription(channel)?.subscribe()
  }

  rpc = async (method: string, data: unknown): Promise<unknown> =>
    (await withRelayError(this.#client.rpc(method, data))).data

  publish = (channel: string, data: unknown): Promise<unknown> => withRelayError(this.#client.publish(channel, data))

  presence = (channel: string): ReturnType<Centrifuge['presence']> => withRelayError(this.#client.presence(channel))

  presenceStats = (channel: string): ReturnType<Centrifuge['presenceStats']> =>
    withRelayError(this.#client.presenceStats(channel))

  history = (channel: string, options: HistoryOptions): ReturnType<Centrifuge['history']> =>
    withRelayError(this.#client.history(channel, options))

  /** Calls no more handlers of the connection. */
  close(): void {
    this.#handlers = NO_HANDLERS
    this.#client.disconnect()
  }
}
