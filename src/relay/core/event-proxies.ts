import type { Disconnect, ReplyError } from './codes.js'
import type { MapRemoval, MapWrite } from './engine.js'
import type { ServerSubscription } from './options.js'
import type { NewPublication, Payload } from './publication.js'

// Events that the core asks a backend about. The folder `proxies/` sends them over HTTP; the core has no part in that.

/** Headers of a client by lower-case name, with all values of a repeated header. Only names that a proxy forwards. */
export type ClientHeaders = Readonly<Record<string, readonly string[]>>

/** A call that has no result yet. Not an `AbortSignal`, whose listeners take a sixth of the CPU time of a call. */
export interface PendingCall {
  abort(): void
}

/** The connection that an event belongs to. */
export interface EventSource {
  /** Id of the client, as in its connect reply. */
  readonly client: string
  /** `websocket`, `sse`, `uni_sse` and so on. */
  readonly transport: string
  /** Encoding of the client. */
  readonly protocol: 'json' | 'protobuf'
  /** '' for an anonymous user, and before the connection has one. */
  readonly user: string
  /** JSON text that the backend attached to the connection, and that the client never receives; null for none. */
  readonly meta: string | null
  /** Headers of the HTTP request that opened the connection; null for none. */
  readonly requestHeaders: ClientHeaders | null
  /** Headers from the connect command, for browsers that cannot set headers; null for none. */
  readonly emulatedHeaders: ClientHeaders | null
  /** Its calls under way, which end when it has left. */
  readonly calls: Set<PendingCall>
}

/** Data that a client sent: JSON text exactly as it arrived, or bytes of a protobuf client; null for none. */
export type EventData = Payload | null

export interface ConnectEvent extends EventSource {
  readonly data: EventData
  readonly name: string
  readonly version: string
  /** Channels that the client asked for. */
  readonly channels: readonly string[]
}

export interface ConnectResult {
  readonly user: string
  /** Seconds since 1970; 0 for never. */
  readonly expiresAt: number
  /** JSON text. */
  readonly info: string | null
  /** For the connect reply. */
  readonly data: Payload | null
  readonly meta: string | null
  /** Server-side subscriptions by channel. */
  readonly subscriptions: ReadonlyMap<string, ServerSubscription>
}

export interface RefreshResult {
  readonly isExpired: boolean
  /** Seconds since 1970; 0 for none. */
  readonly expiresAt: number
  /** Undefined if the response has none, and the earlier value stays. */
  readonly info: string | undefined
  readonly meta: string | undefined
}

export interface ChannelEvent extends EventSource {
  readonly channel: string
}

export interface ChannelDataEvent extends ChannelEvent {
  readonly data: EventData
}

/** A client writes to a map, or removes a key. */
export interface MapRemoveEvent extends ChannelEvent {
  /** '' if the client leaves it to the backend. */
  readonly key: string
}

export interface MapPublishEvent extends MapRemoveEvent, ChannelDataEvent {}

export interface SubscribeEventResult extends ServerSubscription {
  /** Seconds since 1970; 0 for never. */
  readonly expiresAt: number
}

export type PublishEventResult = Partial<
  Pick<NewPublication, 'data' | 'tags' | 'skipHistory' | 'idempotencyKey' | 'version' | 'versionEpoch' | 'delta'>
>

export type MapPublishEventResult = Partial<
  Pick<MapWrite, 'key' | 'data' | 'tags' | 'keyMode' | 'idempotencyKey' | 'version' | 'versionEpoch' | 'delta'>
>

export type MapRemoveEventResult = Partial<MapRemoval>

export interface RpcEvent extends EventSource {
  readonly method: string
  readonly data: EventData
}

export interface RpcResult {
  readonly data: Payload | null
}

/** The decision of the backend: a result, or an error or close code for the client. A failed call is an error too. */
export type EventOutcome<Result> = Result | ReplyError | Disconnect

/** `expired`: the backend did not prolong it. `unavailable`: the call failed, and is repeated later. */
export type RefreshOutcome = RefreshResult | 'expired' | 'unavailable'

/**
 * Asks a backend about events of clients. `proxy` is the name of a configured proxy. No method rejects: failures are logged and
 * counted by the implementation. The result of a call that was aborted is ignored.
 */
export interface EventProxies {
  /** Lower-case names of the request headers, and of the headers in the connect command, that some proxy forwards. */
  readonly requestHeaderNames: readonly string[]
  readonly emulatedHeaderNames: readonly string[]
  /** Null if the response has no result. */
  connect(event: ConnectEvent): Promise<EventOutcome<ConnectResult | null>>
  refresh(event: EventSource): Promise<RefreshOutcome>
  subscribe(proxy: string, event: ChannelDataEvent): Promise<EventOutcome<SubscribeEventResult>>
  refreshSubscription(proxy: string, event: ChannelEvent): Promise<RefreshOutcome>
  publish(proxy: string, event: ChannelDataEvent): Promise<EventOutcome<PublishEventResult>>
  mapPublish(proxy: string, event: MapPublishEvent): Promise<EventOutcome<MapPublishEventResult>>
  mapRemove(proxy: string, event: MapRemoveEvent): Promise<EventOutcome<MapRemoveEventResult>>
  rpc(proxy: string, event: RpcEvent): Promise<EventOutcome<RpcResult>>
}
