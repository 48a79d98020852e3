// The API between the operators' page and the relay. Imports nothing, so that the page can import it.
//
//   POST /admin/api/sign-in      { password }    204 and the session cookie; 401; 429 with Retry-After
//   POST /admin/api/sign-out                     204
//   GET  /admin/api/session                      Session, or 401
//   GET  /admin/api/live?channel=                server-sent events, see LiveEvents; publications only of `channel`
//   GET  /admin/api/channels?kind=&search=&sort=&order=&page=&size=      Page<ChannelRow>; `kind`: see CHANNEL_KINDS
//   GET  /admin/api/channel?name=                ChannelDetail
//   GET  /admin/api/map?channel=&after=&key=     MapPage: entries after a key, or one entry; 404 if the channel is not a map
//   POST /admin/api/map/remove   { channel, key } 204, or 404 if the key is not in the map
//   GET  /admin/api/publication?channel=&offset= LivePublication with complete data, or 404 if it has left the history
//   GET  /admin/api/connections?channel=&user=&search=&sort=&order=&page=&size=   Page<ConnectionRow>; `channel`: its subscribers; `user`: exactly this one
//   GET  /admin/api/connection?client=&search=&order=&page=&size=  ConnectionDetail, or 404
//   GET  /admin/api/backends                     BackendRow[]: the event proxies and webhooks
//   GET  /admin/api/revocations?search=          RevocationPage; `search` matches users
//   GET  /admin/api/config                       ActiveConfig
//   POST /admin/api/publish      TestPublish     TestPublished, or Problem; 409 if it needs a confirmation
//   POST /admin/api/disconnect   DisconnectRequest 204
//   POST /admin/api/sign-out-user SignOutUserRequest 204, or Problem; 409 if it is not enabled
//
// Every POST carries the session's CSRF token in `X-Admin-CSRF`; bodies have the type `application/json`. Errors are a
// `Problem`: 401 without a session, 403 without the token, 404, 405, 413, 415.
//
// Pages count from 0 and end at `MAX_LIST_ROWS`; `size` is 50 by default and 100 at most; `order` is `asc` or `desc`. By default channels are sorted by
// name, connections by user and the channels of a connection by name. `search` matches parts of names in any letter case.
// `data` of server-sent events is JSON.
//
// Automatic requests, such as the refresh of a list, carry `X-Admin-Refresh: 1` and do not extend the session.

export interface AdminSession {
  readonly csrf: string
  readonly version: string
  /** Idle time after which the session ends; the live stream does not count as activity. */
  readonly idleMs: number
}

export interface Problem {
  readonly error: { readonly code: string; readonly message: string }
}

/** Figures of one node for one second, or for five seconds in the history. */
export interface Figures {
  readonly connections: number
  readonly subscriptions: number
  readonly channels: number
  readonly publishesPerSecond: number
  readonly deliveriesPerSecond: number
  readonly bytesPerSecond: number
  /** Bytes queued for clients. */
  readonly queuedBytes: number
  readonly slowReaders: number
  readonly conflatedReaders: number
  readonly eventLoopDelayMs: number
  readonly memoryBytes: number
}

export interface NodeFigures extends Figures {
  readonly node: string
  /** `relay`, `relay worker 2`, or with Redis `relay at some-host 3f2a`. */
  readonly name: string
}

export interface FigureSample {
  /** In milliseconds since 1970. */
  readonly time: number
  /** In any order, without nodes that did not respond in time. */
  readonly nodes: readonly NodeFigures[]
}

export type CheckState = 'green' | 'amber' | 'red'

export interface Check {
  readonly id: string
  readonly title: string
  readonly state: CheckState
  /** The observation, and the advice if the check is not green. */
  readonly sentence: string
  /** Rejected origins, reasons of rejected tokens and so on, with their counts; silent channels with minutes. */
  readonly details: readonly { readonly label: string; readonly count: number }[]
}

export interface LivePublication {
  readonly channel: string
  readonly time: number
  /** 0 without history. */
  readonly offset: number
  /** JSON text, or base64 if `isBinary`; the beginning if `isTruncated`. */
  readonly data: string
  readonly isBinary: boolean
  readonly isTruncated: boolean
  /** Size of the complete data in bytes. */
  readonly size: number
}

/** More than a person can read. */
export const MAX_PUBLICATIONS_PER_SECOND = 20

export interface LiveEvents {
  /** The first event: the figures of the last 15 minutes, recorded every five seconds. */
  readonly history: readonly FigureSample[]
  readonly sample: FigureSample
  readonly checks: readonly Check[]
  readonly publication: LivePublication
  /** Number of publications since the last such event that were not sent, because there were too many or the page does not read. */
  readonly skipped: number
  /** The session has ended. */
  readonly end: null
}

/** A list can be read up to this row. A search or another order leads to the others. */
export const MAX_LIST_ROWS = 5000

export interface Page<Row> {
  readonly rows: readonly Row[]
  /** Number of all rows; at least this number for channels of several nodes that have more than `MAX_LIST_ROWS` each. */
  readonly total: number
  readonly page: number
  readonly size: number
}

export interface RateCount {
  /** Deliveries per second. */
  readonly rate: number
  readonly subscribers: number
}

export interface ChannelRow {
  readonly name: string
  readonly subscribers: number
  readonly publishesPerSecond: number
  /** In milliseconds since 1970; null before the first publication. */
  readonly lastPublish: number | null
  /** Null if the namespace has no history. */
  readonly historyLength: number | null
  /** Subscribers with a limited rate, highest rate first; the others have the full rate. */
  readonly limited: readonly RateCount[]
  /** Number of keys; null if the channel is not a map or this is not known. */
  readonly keys: number | null
  /** Null without views. */
  readonly views: ViewCount | null
}

/** Subscribers that receive a part of the channel. */
export interface ViewCount {
  readonly subscribers: number
  /** Number of different views at the node with the most. */
  readonly different: number
  /** Subscribers whose view was not granted; they receive everything. */
  readonly unlimited: number
}

/** Selects maps, or channels that have subscribers with a view; '' for all. */
export const CHANNEL_KINDS = ['', 'map', 'view'] as const
export type ChannelKind = (typeof CHANNEL_KINDS)[number]

export const CHANNEL_SORTS = ['name', 'subscribers', 'publishesPerSecond', 'lastPublish', 'historyLength'] as const
export type ChannelSort = (typeof CHANNEL_SORTS)[number]

export interface ChannelDetail extends ChannelRow {
  readonly namespace: string
  /** The schema of publications. */
  readonly schema: string | null
  /** An example that matches the schema; null without a schema. */
  readonly example: unknown
  readonly publications: readonly LivePublication[]
  /** Null if the namespace has no presence. */
  readonly presence: ChannelPresence | null
  readonly isMap: boolean
}

/** An entry of a map. */
export interface MapRow extends LivePublication {
  readonly key: string
  /** 0 for none. */
  readonly version: number
  /** In milliseconds since 1970; null if the key does not expire or this is not known. */
  readonly expiresAt: number | null
}

export interface MapPage {
  readonly mode: string
  /** Number of keys in the map. */
  readonly total: number
  readonly rows: readonly MapRow[]
  /** The key after which the next page starts; '' for the last page. */
  readonly next: string
}

export interface ChannelPresence {
  readonly total: number
  /** The first ones. */
  readonly clients: readonly { readonly client: string; readonly user: string }[]
}

export interface ConnectionRow {
  readonly client: string
  readonly user: string
  readonly address: string
  /** Name and version that the client library reports, such as `js` and `5.3.4`; '' if it reports none. */
  readonly clientName: string
  readonly clientVersion: string
  readonly transport: string
  readonly node: string
  /** In milliseconds since 1970. */
  readonly since: number
  readonly channels: number
  /** Bytes queued for the client. */
  readonly queuedBytes: number
  readonly isBehind: boolean
}

export const CONNECTION_SORTS = [
  'user',
  'address',
  'clientName',
  'since',
  'transport',
  'channels',
  'queuedBytes'
] as const
export type ConnectionSort = (typeof CONNECTION_SORTS)[number]

/** The subscription of a connection to one channel. */
export interface SubscriptionRow {
  readonly channel: string
  /** Made by a token or the API, not requested by the client. */
  readonly isServerSide: boolean
  /** The client receives every publication of the stream, or is resubscribed. */
  readonly isPositioned: boolean
  readonly usesDelta: boolean
  /** The client receives only publications with matching tags. */
  readonly isFiltered: boolean
  /** Deliveries per second; null for all. */
  readonly rate: number | null
  /** The part of the channel as JSON, or `everything` if the requested view was not granted; null without a view. */
  readonly view: string | null
}

export const SUBSCRIPTION_SORTS = ['channel'] as const
export type SubscriptionSort = (typeof SUBSCRIPTION_SORTS)[number]

export interface ConnectionDetail extends ConnectionRow {
  readonly protocol: 'json' | 'protobuf'
  readonly subscriptions: Page<SubscriptionRow>
}

export interface TestPublish {
  readonly channel: string
  readonly data: unknown
  /** Required if the channel has subscribers. */
  readonly isConfirmed?: boolean
}

export interface TestPublished {
  readonly offset: number
  readonly epoch: string
}

/** Signs a user out everywhere: closes all connections and rejects all tokens that were issued up to now. */
export interface SignOutUserRequest {
  readonly user: string
}

export interface DisconnectRequest {
  readonly user: string
  /** '' for all clients of the user. */
  readonly client: string
}

/** An event proxy or the receiver of webhooks. */
export interface BackendRow {
  /** Where the configuration file has it. */
  readonly id: string
  /** The events that it is asked about; `state` for webhooks. */
  readonly events: readonly string[]
  readonly state: CheckState
  /** Over the last minute. */
  readonly callsPerSecond: number
  /** From 0 to 1, over the last minute; null without calls. */
  readonly errorRate: number | null
  readonly inFlight: number
  readonly queued: number
  /** Webhook events that wait; null for others, and while the engine is unavailable. */
  readonly waitingEvents: number | null
  /** The reason of the last failure; '' for none. */
  readonly reason: string
  /** In milliseconds since 1970. */
  readonly lastFailure: number | null
}

/** Tokens of a user that are rejected. */
export interface RevocationRow {
  readonly user: string
  /** Only subscription tokens of this channel; '' for all tokens. */
  readonly channel: string
  /** In seconds since 1970: tokens that were issued then or before are rejected. */
  readonly issuedBefore: number
  /** In milliseconds since 1970. */
  readonly expiresAt: number
}

export interface RevocationPage {
  readonly total: number
  /** The first ones, those of the latest tokens first. */
  readonly rows: readonly RevocationRow[]
}

export interface ActiveConfig {
  /** Secrets are shown as `(hidden)`. */
  readonly config: unknown
  /** In milliseconds since 1970. */
  readonly startedAt: number
  readonly reloadedAt: number | null
}
