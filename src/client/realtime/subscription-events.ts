import type { ClientInfo, FilterNode, HistoryOptions, StreamPosition } from 'centrifuge'
import type { RelayError } from './relay-error.js'

export type { ClientInfo, FilterNode, HistoryOptions, StreamPosition }

export type SubscriptionState =
  /** Waits for the session, a connection, a token or the reply of the relay. */
  | 'subscribing'
  | 'subscribed'
  /** Released, or rejected by the relay: `error` says why. */
  | 'unsubscribed'

export interface Publication<Data = unknown> {
  readonly channel: string
  readonly data: Data
  /** Position in the history of the channel, if it has one. */
  readonly offset?: number
  readonly tags?: Readonly<Record<string, string>>
  /** The client that published it; none for publications of a backend. */
  readonly info?: ClientInfo
}

export interface History<Data = unknown> extends StreamPosition {
  readonly publications: readonly Publication<Data>[]
}

export interface SubscriptionEvents<Data = unknown> {
  publication: Publication<Data>
  state: SubscriptionState
  /** Publications were missed and cannot be recovered: load the data again. */
  gap: { readonly channel: string }
  /** Another client subscribed; with `joinLeave`. */
  join: ClientInfo
  leave: ClientInfo
  /** The relay rejected the subscription, an attempt failed, or a publication does not match its schema. */
  error: RelayError
}

export interface SubscribeOptions {
  /** True asks for the recovery of missed publications; a stored position recovers from there. Null, for none stored, is true. */
  readonly recover?: boolean | StreamPosition | null | undefined
  /** Receive changes to the previous publication only, if the namespace allows it. Not together with `filter`. */
  readonly delta?: boolean | undefined
  /** Publications per second at most, if the namespace allows it; the relay merges the others. */
  readonly maxRate?: number | undefined
  /** Only publications with matching tags, if the namespace allows it. */
  readonly filter?: FilterNode | undefined
  /** Sent with the subscription. */
  readonly data?: unknown
  /** A subscription token, or a function that requests one. The function is called again before a token expires. */
  readonly token?: string | ((channel: string) => Promise<string>) | undefined
  /** Receive `join` and `leave`, if the namespace has them. */
  readonly joinLeave?: boolean | undefined
}
