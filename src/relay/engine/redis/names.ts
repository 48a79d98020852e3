/** What is about no channel lies together, in one slot of a cluster. */
export const SERVICE_TAG = 'all'

/**
 * What the relay's things are called in Redis. Everything of one channel has the channel as its hash tag, so that a cluster
 * keeps it in one slot. The colon in the tag is there for channels whose name begins with a brace: a tag is never empty.
 */
export class RedisNames {
  readonly #prefix: string
  readonly #begin: string

  constructor(prefix: string) {
    this.#prefix = prefix
    this.#begin = `${prefix}{:`
  }

  /** Where the channel's messages go; its keys begin so too. */
  channel(channel: string): string {
    return `${this.#begin}${channel}}`
  }

  /** The channel of such a name, or null where it is the name of something else. */
  channelOf(name: string): string | null {
    return name.startsWith(this.#begin) && name.endsWith('}') ? name.slice(this.#begin.length, -1) : null
  }

  /** The key of the user's connections; the tag is made as that of a channel. */
  user(user: string): string {
    return `${this.#prefix}@{:${user}}`
  }

  /** Where nodes tell something to each other, or to themselves. */
  service(name: string, tag = SERVICE_TAG): string {
    return `${this.#prefix}!{${tag}}${name}`
  }
}
