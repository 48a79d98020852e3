// Requests and results of the relay's event proxies, with the names of their JSON fields.

/** Fields of every event except `state`. */
export interface ClientEvent {
  /** Id of the connection. */
  readonly client: string
  readonly transport: string
  /** Encoding of the client: `json` or `protobuf`. */
  readonly protocol: string
  /** `binary` if data is base64 in `b64data` (the option `binary_encoding`), else `json`. */
  readonly encoding: string
}

/** An event of a connection that has a user. */
export interface UserEvent extends ClientEvent {
  /** '' for an anonymous user. */
  readonly user: string
  /** Set by the connect proxy or the token, if the proxy has the option `include_connection_meta`. */
  readonly meta?: unknown
}

/** Numbers above 2^53 lose digits, as with every JSON.parse. */
export interface EventData {
  readonly data?: unknown
  readonly b64data?: string
}

export interface ConnectEvent extends ClientEvent, EventData {
  readonly name?: string
  readonly version?: string
  /** Channels that the client would like to have. */
  readonly channels?: readonly string[]
}

export type RefreshEvent = UserEvent

export interface SubscribeEvent extends UserEvent, EventData {
  readonly channel: string
}

export type PublishEvent = SubscribeEvent

export interface SubRefreshEvent extends UserEvent {
  readonly channel: string
}

export interface RpcEvent extends UserEvent, EventData {
  readonly method: string
}

export interface StateChange {
  readonly channel: string
  readonly type: 'occupied' | 'vacated'
  /** Milliseconds since 1970. */
  readonly time_ms: number
  /** The same if the event is sent again. */
  readonly id: string
}

/** A batch of channel state webhooks. An event may arrive more than once. */
export interface StateEvent {
  readonly events: readonly StateChange[]
}

/** Options of the channel's namespace that are different for one subscription. */
export interface SubscriptionOverride {
  readonly presence?: { readonly value: boolean }
  readonly join_leave?: { readonly value: boolean }
  readonly force_push_join_leave?: { readonly value: boolean }
  readonly force_recovery?: { readonly value: boolean }
  readonly force_positioning?: { readonly value: boolean }
}

export interface ServerSubscription {
  readonly info?: unknown
  readonly b64info?: string
  readonly data?: unknown
  readonly b64data?: string
  readonly override?: SubscriptionOverride
}

export interface ConnectResult {
  /** '' for an anonymous user. */
  readonly user: string
  /** Seconds since 1970; 0 for never. */
  readonly expire_at?: number
  /** Other clients see it in presence and in publications. */
  readonly info?: unknown
  readonly b64info?: string
  /** The client receives it in its connect reply. */
  readonly data?: unknown
  readonly b64data?: string
  /** Channels that the client is subscribed to at once. */
  readonly channels?: readonly string[]
  readonly subs?: Readonly<Record<string, ServerSubscription>>
  /** Later events contain it. Clients do not receive it. */
  readonly meta?: unknown
}

/** Without `expire_at`, the connection is closed as expired. */
export interface RefreshResult {
  readonly expired?: boolean
  /** Seconds since 1970. */
  readonly expire_at?: number
  readonly info?: unknown
  readonly b64info?: string
  readonly meta?: unknown
}

/** Without `expire_at`, the subscription does not expire again. */
export type SubRefreshResult = Omit<RefreshResult, 'meta'>

export interface SubscribeResult extends ServerSubscription {
  /** Seconds since 1970; 0 for never. */
  readonly expire_at?: number
}

export interface PublishResult {
  /** Replaces the data of the client. */
  readonly data?: unknown
  readonly b64data?: string
  readonly tags?: Readonly<Record<string, string>>
  readonly skip_history?: boolean
  readonly idempotency_key?: string
  readonly version?: number
  readonly version_epoch?: string
  readonly delta?: boolean
}

export interface RpcResult {
  readonly data?: unknown
  readonly b64data?: string
}

/** Request and result of each event. A handler without a result allows the event. */
export interface Events {
  /** Null: the client is anonymous if the relay allows that, and is rejected otherwise. */
  readonly connect: { readonly event: ConnectEvent; readonly result: ConnectResult | null }
  readonly refresh: { readonly event: RefreshEvent; readonly result: RefreshResult }
  readonly subscribe: { readonly event: SubscribeEvent; readonly result: SubscribeResult | undefined }
  readonly sub_refresh: { readonly event: SubRefreshEvent; readonly result: SubRefreshResult }
  readonly publish: { readonly event: PublishEvent; readonly result: PublishResult | undefined }
  readonly rpc: { readonly event: RpcEvent; readonly result: RpcResult | undefined }
  readonly state: { readonly event: StateEvent; readonly result: undefined }
}

export type EventName = keyof Events
