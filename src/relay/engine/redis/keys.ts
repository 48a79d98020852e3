import keySlot from 'cluster-key-slot'

// All names of keys and pub/sub topics. They are stored data, which relays of different versions share: do not change them.

/** Hash tag of all keys and topics that belong to no channel, so that one server of a Redis Cluster has them. */
export const CONTROL_TAG = 'all'

/** Names for `RedisKeys.control`. */
export const CONTROL = {
  /** Hash: the number of the last write of each node, and the generation of the data. */
  ledger: 'ledger',
  /** Hash: id and last number of the command log. */
  commandLog: 'commands',
  /** Stream: the commands. */
  commandStream: 'commands:stream',
  /** Sorted set: the nodes by the end of their lease. */
  nodes: 'nodes',
  /** Set: the proxies that have an index of channel states. */
  stateProxies: 'states',
  /** Sorted set: channels by the time at which their state must be checked. */
  stateIndex: (proxy: string): string => `states:${proxy}`,
  /**
   * Hash: epoch and generation of all channels without a stored position. One for each lifetime of positions at each server, or
   * for each hash slot of a Redis Cluster.
   */
  unusedEpoch: (ttlMs: number): string => `unused:${ttlMs}`,
  /** Sorted set: maps by the time at which their deadlines must be checked. One per server, or per hash slot of a Redis Cluster. */
  mapIndex: 'maps',
  /** Topic of messages to all nodes. */
  allNodesTopic: 'all-nodes',
  /** Topic of messages to one node. */
  nodeTopic: (node: string): string => `node:${node}`,
  /** Topic of the heartbeats that a node sends to itself. */
  heartbeatTopic: (node: string): string => `heartbeat:${node}`
} as const

/** Suffixes of the keys of a channel. The prefix is the topic of the channel. */
export const KEY_SUFFIX = {
  /** Hash: offset and epoch, and the last version. */
  position: 'position',
  /** Stream: the publications. */
  stream: 'stream',
  /** Followed by an idempotency key. String: the position of the publication with that key. */
  result: 'result:',
  /** Followed by a random id. String: the data of a running broadcast. */
  broadcastBody: 'body:',
  /** Hash: client info by client id. */
  presence: 'presence',
  /** Sorted set: client ids by the end of their lease. */
  presenceLeases: 'leases',
  /** Hash: whether the channel is occupied, and the event about it. */
  state: 'state',
  /** Hash: the entries of a map by key. */
  entries: 'entries',
  /** Sorted set: the keys of a map in their order. */
  entryNames: 'names',
  /** Sorted set: the keys of a map by the time at which they expire. */
  deadlines: 'deadlines',
  /** Hash: the last version of keys of a map. */
  versions: 'versions'
} as const

/** The key of a channel. The topic is that of `RedisKeys.channel`. */
export const channelKey = (topic: string, key: keyof typeof KEY_SUFFIX, id = ''): string =>
  `${topic}${KEY_SUFFIX[key]}${id}`

/** Entries, leases and state of a channel. */
export const presenceKeys = (topic: string): readonly [entries: string, leases: string, state: string] => [
  channelKey(topic, 'presence'),
  channelKey(topic, 'presenceLeases'),
  channelKey(topic, 'state')
]

/** The keys of a map, in the order that the scripts expect. */
export const mapKeys = (topic: string): readonly string[] => [
  channelKey(topic, 'position'),
  channelKey(topic, 'stream'),
  topic,
  channelKey(topic, 'entries'),
  channelKey(topic, 'entryNames'),
  channelKey(topic, 'deadlines'),
  channelKey(topic, 'versions')
]

/**
 * Adds the prefix of this relay to names. All names of a channel have the channel as their hash tag, so that they share one hash
 * slot. The colon keeps the tag from being empty, for channels whose name begins with a closing brace.
 */
export class RedisKeys {
  readonly #prefix: string
  readonly #channelPrefix: string

  constructor(prefix: string) {
    this.#prefix = prefix
    this.#channelPrefix = `${prefix}{:`
  }

  /** The pub/sub topic of a channel, which is also the prefix of its keys. */
  channel(channel: string): string {
    return `${this.#channelPrefix}${channel}}`
  }

  /** The channel of a topic, or null for a control topic. */
  channelOf(topic: string): string | null {
    return topic.startsWith(this.#channelPrefix) && topic.endsWith('}')
      ? topic.slice(this.#channelPrefix.length, -1)
      : null
  }

  /** The key of a user's connections. It has the same hash slot as a channel with the name of the user. */
  user(user: string): string {
    return `${this.#prefix}@{:${user}}`
  }

  /** The key of a token bucket of a user, in the same hash slot. The name must not end with a closing brace. */
  userRate(user: string, bucket: string): string {
    return `${this.user(user)}rate:${bucket}`
  }

  /** A key or topic for communication between nodes, not for a channel. */
  control(name: string, hashTag = CONTROL_TAG): string {
    return `${this.#prefix}!{${hashTag}}${name}`
  }
}

/**
 * Suffix of every pub/sub topic on a server. Redis separates databases for keys only: a message reaches the subscribers of all
 * databases, so the database number is part of the topic.
 */
export const topicSuffix = (db: number): string => (db === 0 ? '' : `/${db}`)

export const HASH_SLOTS = 16_384

/** The hash slot of all keys of a channel, whatever their prefix. Hashes the bytes that are sent to Redis. */
export const channelSlot = (channel: string): number => keySlot(Buffer.from(`{:${channel}}`))

/** The hash slot of control keys with this hash tag. */
export const tagSlot = (hashTag: string): number => keySlot(Buffer.from(`{${hashTag}}`))
