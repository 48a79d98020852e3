import keySlot from 'cluster-key-slot'

/** Hash tag of all keys and topics that belong to no channel, so that one server of a Redis Cluster has them. */
export const CONTROL_TAG = 'all'

/**
 * Names of keys and pub/sub topics. All names of a channel have the channel as their hash tag, so that they share one hash slot.
 * The colon keeps the tag from being empty, for channels whose name begins with a closing brace.
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

  /** A key or topic for communication between nodes, not for a channel. */
  control(name: string, hashTag = CONTROL_TAG): string {
    return `${this.#prefix}!{${hashTag}}${name}`
  }
}

export const HASH_SLOTS = 16_384

/** The hash slot of all keys of a channel, whatever their prefix. Hashes the bytes that are sent to Redis. */
export const channelSlot = (channel: string): number => keySlot(Buffer.from(`{:${channel}}`))

/** The hash slot of control keys with this hash tag. */
export const tagSlot = (hashTag: string): number => keySlot(Buffer.from(`{${hashTag}}`))
