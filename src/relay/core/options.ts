// Options as plain validated values. All times are in milliseconds.

export interface CompressionOptions {
  /** Shorter messages are not compressed. */
  readonly minBytes: number
  /** Level of zlib, from 1 (fast) to 9 (small). */
  readonly level: number
  /** Maximum size of a message of a client after decompression. */
  readonly maxDecompressedBytes: number
}

/** `occupied`: a channel has subscribers. */
export type ChannelState = 'occupied' | 'vacated'

/**
 * The subscriptions of a namespace: a stream of publications, or a map. The entries of a map are published data, its clients, or
 * its users.
 */
export type SubscriptionType = 'stream' | 'map' | 'map_clients' | 'map_users'

/** `ephemeral`: keys expire, and there is no stream. `recoverable`: keys expire. `persistent`: keys stay. */
export type MapMode = 'ephemeral' | 'recoverable' | 'persistent'

/** Options of a namespace whose channels are maps. */
export interface MapOptions {
  readonly mode: MapMode
  /** How long a key stays after its last write; 0 in a persistent map. */
  readonly keyTtlMs: number
  /** Number of changes in the stream; 0 in an ephemeral map. */
  readonly streamSize: number
  readonly streamTtlMs: number
  /** Lifetime of epoch and offset after the last use; 0 for ever. */
  readonly metaTtlMs: number
  /** A write that would add a key to a map with this many keys is rejected. */
  readonly maxKeys: number
  /** Deliveries contain the replaced entry, because deltas, tag filters or views need it. */
  readonly deliversPrevious: boolean
  readonly defaultPageSize: number
  readonly minPageSize: number
  readonly maxPageSize: number
  /** A client with more changes to catch up starts again. */
  readonly liveLimit: number
  /** Maximum time from the first page to live delivery; infinite for none. */
  readonly catchUpTimeoutMs: number
  /** Replaces the key in the writes of clients; null: clients choose it. */
  readonly clientKey: 'client_id' | 'user_id' | null
  /** Removes the key with the id of the client when its subscription ends. */
  readonly removeClientOnUnsubscribe: boolean
  readonly allowPublishForClient: boolean
  readonly allowPublishForSubscriber: boolean
  readonly allowPublishForAnonymous: boolean
  readonly allowRemoveForClient: boolean
  readonly allowRemoveForSubscriber: boolean
  readonly allowRemoveForAnonymous: boolean
  /** Names of the proxies that are asked about writes and removals of clients; null for none. */
  readonly publishProxy: string | null
  readonly removeProxy: string | null
}

/** The part of `MapOptions` that engines need. */
export type MapStorageOptions = Pick<
  MapOptions,
  'mode' | 'keyTtlMs' | 'streamSize' | 'streamTtlMs' | 'metaTtlMs' | 'maxKeys' | 'deliversPrevious'
>

/** Where entries have their coordinates, and the size of the cells to which the views of subscribers are rounded. */
export interface ViewOptions {
  /** Member names from an entry, or from the data of a map, to the number. */
  readonly x: readonly string[]
  readonly y: readonly string[]
  readonly cell: number
}

/** Options of a namespace. Everything that is not allowed is rejected. */
export interface ChannelOptions {
  readonly presence: boolean
  readonly joinLeave: boolean
  readonly forcePushJoinLeave: boolean
  /** There is no history if this or `historyTtlMs` is 0. */
  readonly historySize: number
  readonly historyTtlMs: number
  /** Lifetime of epoch and offset after the last use of a channel; at least `historyTtlMs`. */
  readonly historyMetaTtlMs: number
  readonly forceRecovery: boolean
  /** `stream` recovers all missed publications, `cache` only the newest. */
  readonly recoveryMode: 'stream' | 'cache'
  /** In `cache` mode: clients receive the newest publication even if they do not request recovery. */
  readonly autoCacheRecover: boolean
  readonly forcePositioning: boolean
  readonly allowRecovery: boolean
  readonly allowPositioning: boolean
  readonly allowSubscribeForClient: boolean
  readonly allowSubscribeForAnonymous: boolean
  readonly allowPublishForClient: boolean
  readonly allowPublishForSubscriber: boolean
  readonly allowPublishForAnonymous: boolean
  readonly allowPresenceForClient: boolean
  readonly allowPresenceForSubscriber: boolean
  readonly allowPresenceForAnonymous: boolean
  readonly allowHistoryForClient: boolean
  readonly allowHistoryForSubscriber: boolean
  readonly allowHistoryForAnonymous: boolean
  readonly allowedDeltaTypes: readonly 'fossil'[]
  readonly deltaPublish: boolean
  readonly allowUserLimitedChannels: boolean
  /** Clients may subscribe with a filter on tags. */
  readonly allowTagsFilter: boolean
  /** Pattern for the name after the namespace; without one, names must be printable ASCII. */
  readonly channelRegex: TextPattern | null
  /**
   * `json`: any JSON value; `json_object`: a JSON object; `binary`: any bytes, also none, for protobuf clients only; `any`: a JSON
   * value or other bytes, but not none.
   */
  readonly publicationDataFormat: 'any' | 'json' | 'json_object' | 'binary'
  /** Path to the list in a publication and the key of its entries, such as `data[].id`. */
  readonly conflate: string | null
  /** Path from such an entry to its time: an entry never replaces a newer one. Null: the later publication wins. */
  readonly entryTime: string | null
  /** Subscribers receive the history merged by key; requires `conflate` and history. */
  readonly snapshot: boolean
  /** Subscribers may limit their deliveries per second; requires `conflate`. */
  readonly allowMaxRate: boolean
  /** Subscribers may ask for a part of the plane; null if they may not. Requires `snapshot` or `map`. */
  readonly view: ViewOptions | null
  readonly subscriptionType: SubscriptionType
  /** Null for streams. */
  readonly map: MapOptions | null
  /** A live subscription writes an entry into the map with this prefix and the name of its channel; null for none. */
  readonly mapClientsPresencePrefix: string | null
  readonly mapUsersPresencePrefix: string | null
  /** Name of the schema that publications must match. */
  readonly schema: string | null
  /** Names of the proxies that are asked about subscribing, publishing and expired subscriptions; null for none. */
  readonly subscribeProxy: string | null
  readonly publishProxy: string | null
  readonly subRefreshProxy: string | null
  /** Name of the proxy that is notified when a channel becomes occupied or vacated; null for none. Requires `presence`. */
  readonly stateProxy: string | null
  /** The events that this proxy receives. */
  readonly stateEvents: readonly ChannelState[]
  /** Limits of commands in this namespace, beside those of the client options. */
  readonly commandLimits: readonly CommandLimit[]
}

/** The part that engines need. */
export type HistoryOptions = Pick<ChannelOptions, 'historySize' | 'historyTtlMs' | 'historyMetaTtlMs'>

export interface ChannelRules {
  readonly withoutNamespace: ChannelOptions
  readonly namespaces: ReadonlyMap<string, ChannelOptions>
  readonly namespaceBoundary: string
  readonly userBoundary: string
  /** Separates the users of a user-limited channel. */
  readonly userSeparator: string
  readonly privatePrefix: string
  /** Maximum length of a channel name in bytes. */
  readonly maxLength: number
}

/** Options for connections. */
export interface ClientOptions {
  /** Disables tokens and all permission checks, for test suites of client libraries. */
  readonly insecure: boolean
  readonly allowAnonymousConnectWithoutToken: boolean
  /** Lower-case name of the request header with the user of clients without a token; null for none. */
  readonly userIdHeader: string | null
  /** Rejects connection tokens without a user. */
  readonly disallowAnonymousConnectionTokens: boolean
  readonly token: ClaimRules
  /** Equal to `token` unless subscription tokens are configured separately. */
  readonly subscriptionToken: ClaimRules
  readonly pingIntervalMs: number
  readonly pongTimeoutMs: number
  readonly staleCloseDelayMs: number
  readonly expiredCloseDelayMs: number
  readonly expiredSubCloseDelayMs: number
  readonly queueMaxBytes: number
  readonly channelLimit: number
  /** The limits from here to `commandsPerSecond`: 0 for none. */
  readonly userConnectionLimit: number
  readonly connectionLimit: number
  readonly connectionsPerAddress: number
  /** New connections per second. */
  readonly connectionRateLimit: number
  readonly commandsPerSecond: number
  /** Commands of one client that may run at the same time; 0 and 1: one after the other. */
  readonly concurrency: number
  readonly positionCheckDelayMs: number
  /** Maximum time from publish to delivery for subscribers with a position; 0 for no limit. */
  readonly positionMaxTimeLagMs: number
  readonly historyMaxPublicationLimit: number
  readonly recoveryMaxPublicationLimit: number
  /** Maximum size of a message from a client in bytes. */
  readonly messageSizeLimit: number
  /** Maximum sizes of the requests of clients without a WebSocket, in bytes: two connect requests, and commands. */
  readonly sseBodyBytes: number
  readonly httpStreamBodyBytes: number
  readonly emulationBodyBytes: number
  /** WebSocket compression; null if it is off. */
  readonly compression: CompressionOptions | null
  readonly userSubscribeToPersonal: boolean
  readonly personalChannelNamespace: string
  /** A new connection of a user closes the earlier ones. Requires presence of the personal channels. */
  readonly singleConnection: boolean
  readonly includeConnectionTime: boolean
  /** Whether a backend is asked about connections without a token, and about connections that expire. */
  readonly connectProxy: boolean
  readonly refreshProxy: boolean
  /** Null if tokens cannot be invalidated. */
  readonly tokenInvalidation: TokenInvalidationOptions | null
  /** Limits of commands in all namespaces together. */
  readonly commandLimits: readonly CommandLimit[]
}

export type LimitedCommand = 'connect' | 'subscribe' | 'publish' | 'rpc' | 'history'

/** A token bucket for each connection or each user: `rate` commands per interval, and as many at once. */
export interface CommandLimit {
  readonly commands: readonly LimitedCommand[]
  readonly by: 'client' | 'user'
  readonly rate: number
  readonly intervalMs: number
}

export interface TokenInvalidationOptions {
  /** How long invalidations are kept. */
  readonly ttlMs: number
}

/** Which proxy is asked about a method of `rpc`. */
export interface RpcRules {
  /** Names of proxies; null if calls without a namespace, or of this namespace, are not available. */
  readonly withoutNamespace: string | null
  readonly namespaces: ReadonlyMap<string, string | null>
  readonly namespaceBoundary: string
  /** The method that the relay itself responds to; null for none. */
  readonly pingMethod: string | null
}

/** A regular expression of the configuration. */
export interface TextPattern {
  readonly source: string
  test(text: string): boolean
}

export interface ClaimRules {
  readonly expiryRequired: boolean
  /** A value that `aud` must contain, or a pattern that one of its values must match. */
  readonly audience: string | TextPattern | null
  readonly issuer: string | TextPattern | null
  /** The claim that contains the user id. */
  readonly userIdClaim: string
}

/** A subscription that is made by a token, the API or a backend. */
export interface ServerSubscription {
  /** JSON text. */
  readonly info: string | null
  /** For the subscribe reply. Bytes that are not JSON can only be sent to protobuf clients. */
  readonly data: string | Buffer | null
  readonly override: Override
}

/** Namespace options that a token, the API or a backend changes for one subscription. */
export interface Override {
  readonly presence?: boolean
  readonly joinLeave?: boolean
  readonly forcePushJoinLeave?: boolean
  readonly forceRecovery?: boolean
  readonly forcePositioning?: boolean
  /** `cache_recover` of a backend. */
  readonly autoCacheRecover?: boolean
}

export const NO_OVERRIDE: Override = {}
