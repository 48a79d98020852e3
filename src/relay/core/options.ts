// What the operator decided, as the core sees it: plain values, checked before they come here. Times are milliseconds.

/** What holds on the channels of one namespace. What is not opened here is closed. */
export interface ChannelOptions {
  readonly presence: boolean
  readonly joinLeave: boolean
  readonly forcePushJoinLeave: boolean
  /** 0 together with `historyTtlMs`: no history. */
  readonly historySize: number
  readonly historyTtlMs: number
  /** How long epoch and offset outlive the last use of a channel. Never shorter than `historyTtlMs`. */
  readonly historyMetaTtlMs: number
  readonly forceRecovery: boolean
  /** Whether who recovers gets all that it missed or only the newest publication. */
  readonly recoveryMode: 'stream' | 'cache'
  /** In the mode `cache`: who does not ask for it gets the newest publication too. */
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
  /** What the name behind the namespace must match; without one it must be ASCII. */
  readonly channelRegex: RegExp | null
  /** Where in a publication the list is, and the key of its entries: `data[].transmitterId`. */
  readonly conflate: string | null
  /** Name of the schema that publications must fit. */
  readonly schema: string | null
}

/** What engines must know of it. */
export type HistoryOptions = Pick<ChannelOptions, 'historySize' | 'historyTtlMs' | 'historyMetaTtlMs'>

export interface ChannelRules {
  readonly withoutNamespace: ChannelOptions
  readonly namespaces: ReadonlyMap<string, ChannelOptions>
  readonly namespaceBoundary: string
  readonly userBoundary: string
  readonly privatePrefix: string
  /** In bytes. */
  readonly maxLength: number
}

/** What holds for connections. A limit of 0 is no limit. */
export interface ClientOptions {
  /** No tokens, everything allowed: for test suites of clients. */
  readonly insecure: boolean
  readonly allowAnonymousConnectWithoutToken: boolean
  /** Whether a connection token must have an expiry. */
  readonly tokenExpiryRequired: boolean
  readonly tokenHmacSecret: string
  /** Being replaced: its tokens are still accepted. */
  readonly tokenHmacSecretPrevious: string | null
  /** The same as `tokenHmacSecret` where no other is configured. */
  readonly subscriptionTokenHmacSecret: string
  readonly subscriptionTokenHmacSecretPrevious: string | null
  readonly tokenAudience: string | null
  readonly tokenIssuer: string | null
  readonly pingIntervalMs: number
  readonly pongTimeoutMs: number
  readonly staleCloseDelayMs: number
  readonly expiredCloseDelayMs: number
  readonly expiredSubCloseDelayMs: number
  readonly queueMaxBytes: number
  readonly channelLimit: number
  readonly userConnectionLimit: number
  readonly connectionLimit: number
  readonly connectionsPerAddress: number
  /** New connections per second. */
  readonly connectionRateLimit: number
  readonly commandsPerSecond: number
  readonly positionCheckDelayMs: number
  readonly historyMaxPublicationLimit: number
  readonly recoveryMaxPublicationLimit: number
  /** Of one message from a client, in bytes. */
  readonly messageSizeLimit: number
  readonly userSubscribeToPersonal: boolean
  readonly personalChannelNamespace: string
  readonly includeConnectionTime: boolean
}
