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

export const SLOTS = 16_384

const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
  return crc
})

/** The slot of a hash tag, as every Redis Cluster computes it: CRC16 of its bytes. */
export const hashSlot = (tag: string): number => {
  let crc = 0
  for (const byte of Buffer.from(tag)) crc = ((crc << 8) & 0xffff) ^ (TABLE[(crc >> 8) ^ byte] as number)
  return crc % SLOTS
}

/** What of a channel's tag counts: a brace in its name ends the tag early. */
export const hashTag = (channel: string): string => {
  const brace = channel.indexOf('}')
  return `:${brace === -1 ? channel : channel.slice(0, brace)}`
}
