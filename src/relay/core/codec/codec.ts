import type { Disconnect, ReplyError, Unsubscribe } from '../codes.js'
import type { JoinOrLeave } from '../engine.js'
import type { MapPhase, Method } from '../protocol.js'
import type { Payload, Position, Publication } from '../publication.js'

/** A command of a client before the values of its fields are validated. */
export type RawCommand = Readonly<Record<string, unknown>>

/** The reply of a client to a ping. */
export const PONG: RawCommand = {}

/** A serialised message: JSON text, or protobuf bytes with their length in front. */
export type Encoded = string | Buffer

/** A message in parts that follow each other. Other clients may receive some of the same buffers. */
export type MessageParts = readonly Buffer[]

export type EncodedMessage = Encoded | MessageParts

/** A publication as it is sent to a client. */
export interface SentPublication {
  readonly publication: Publication
  /** Epoch of the stream. */
  readonly epoch: string
  /** The data of the publication, or the patch if it is sent as a delta. */
  readonly data: Payload
  readonly isDelta: boolean
}

export interface ConnectReply {
  readonly client: string
  readonly version: string
  /** Seconds until the client has to refresh the connection; 0 for never. */
  readonly ttl: number
  /** From the backend; null for none. */
  readonly data: Payload | null
  /** The server-side subscriptions by channel. */
  readonly subs: ReadonlyMap<string, SubscribeReply>
  /** Seconds between pings; 0 for none. */
  readonly ping: number
  readonly pong: boolean
  /** Session of an emulated or unidirectional transport, and node of an emulated one; '' for others. */
  readonly session: string
  readonly node: string
  /** Milliseconds since 1970; 0 if the option is off. */
  readonly time: number
}

export interface SubscribeReply {
  /** Seconds until the client has to refresh the subscription; 0 for never. */
  readonly ttl: number
  readonly recoverable: boolean
  readonly positioned: boolean
  readonly position: Position
  readonly publications: readonly SentPublication[]
  readonly recovered: boolean
  readonly wasRecovering: boolean
  readonly data: Payload | null
  readonly delta: boolean
  /** Null for a stream. */
  readonly map: MapProgress | null
}

/** How far a client has loaded a map, and the entries in this reply. */
export interface MapProgress {
  readonly phase: MapPhase
  /** For the request of the next page; '' if there is none. */
  readonly cursor: string
  readonly state: readonly SentPublication[]
}

/** The `type` in all replies about maps. */
export const MAP_REPLY_TYPE = 1

export interface PresenceReply {
  /** Client info as JSON text, by client id. */
  readonly presence: ReadonlyMap<string, string>
}

export interface PresenceStatsReply {
  readonly clients: number
  readonly users: number
}

export interface HistoryReply extends Position {
  readonly publications: readonly Publication[]
}

export interface RpcReply {
  /** Null for none. */
  readonly data: Payload | null
}

export interface RefreshReply {
  readonly client: string
  readonly ttl: number
}

export interface SubRefreshReply {
  readonly ttl: number
}

/** The result of a command without a result. */
export type EmptyReply = Readonly<Record<string, never>>

export const EMPTY_REPLY: EmptyReply = {}

/** The result of each command. `send` always fails. */
export interface Replies {
  readonly connect: ConnectReply
  readonly subscribe: SubscribeReply
  readonly unsubscribe: EmptyReply
  readonly publish: EmptyReply
  readonly presence: PresenceReply
  readonly presence_stats: PresenceStatsReply
  readonly history: HistoryReply
  readonly rpc: RpcReply
  readonly refresh: RefreshReply
  readonly sub_refresh: SubRefreshReply
}

export type RepliedMethod = keyof Replies & Method

/** Commands with data of the client. */
export type DataMethod = Extract<Method, 'connect' | 'subscribe' | 'publish' | 'rpc'>

/** A message that is not the reply to a command. */
export type Push =
  | { readonly kind: 'pub'; readonly channel: string; readonly pub: SentPublication }
  | { readonly kind: JoinOrLeave; readonly channel: string; readonly info: string }
  | { readonly kind: 'unsubscribe'; readonly channel: string; readonly unsubscribe: Unsubscribe }
  | { readonly kind: 'subscribe'; readonly channel: string; readonly subscribe: SubscribeReply }
  | { readonly kind: 'refresh'; readonly refresh: RefreshReply }
  | { readonly kind: 'disconnect'; readonly disconnect: Disconnect }

/** Encodes the publication pushes of one channel. Arguments instead of an object, because this runs for every publication. */
export type PublicationEncoder = (publication: Publication, epoch: string, data: Payload, isDelta: boolean) => Encoded

/** Serialises the messages of one connection. */
export interface Codec {
  readonly name: 'json' | 'protobuf'
  /** Whether data that is not JSON can be sent. */
  readonly allowsBinary: boolean
  /** The ping of the server. */
  readonly ping: Encoded
  /** Splits a frame into commands; null for a malformed or empty frame. */
  split(frame: string | Buffer): readonly Encoded[] | null
  /** Whether a frame consists of a pong only. */
  isPongFrame(frame: string | Buffer): boolean
  /** `PONG` for a pong, null for a malformed command. */
  decode(command: Encoded): RawCommand | null
  /** The `data` of a command, unchanged; null if it is missing. `request` is the decoded command of this method. */
  commandData(command: Encoded, method: DataMethod, request: unknown): Payload | null
  reply<M extends RepliedMethod>(id: number, method: M, result: Replies[M]): EncodedMessage
  errorReply(id: number, error: ReplyError): Encoded
  push(push: Push): Encoded
  publicationEncoder(channel: string): PublicationEncoder
  /** The form in which data and patches are sent to a subscriber with deltas. */
  deltaData(data: Payload): Payload
  /** Joins messages into one that is sent in a single frame. */
  join(messages: readonly EncodedMessage[]): EncodedMessage
}

/** Whether the codec can carry the data of a publication or a reply. */
export const canCarry = ({ allowsBinary }: Codec, { data }: { readonly data: Payload | null }): boolean =>
  allowsBinary || !Buffer.isBuffer(data)

/** Everything in a publication except its payloads: field names, numbers, epoch. */
const PUBLICATION_OVERHEAD_BYTES = 160

/** An upper bound for the size of a publication in a reply, for all codecs. */
export const maxPublicationBytes = (data: Payload, { info, tags, key }: Publication): number =>
  PUBLICATION_OVERHEAD_BYTES +
  payloadBytes(data) +
  // A character of a key has at most six bytes in a JSON string.
  6 * (key?.length ?? 0) +
  (info === null ? 0 : Buffer.byteLength(info)) +
  // A short tag takes more bytes in protobuf than in JSON.
  (tags === null ? 0 : 2 * Buffer.byteLength(tags))

export const payloadBytes = (payload: Payload | Encoded): number =>
  typeof payload === 'string' ? Buffer.byteLength(payload) : payload.length
