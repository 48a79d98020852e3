import type { Redis } from 'ioredis'
import type { RedisLink } from '../redis-link.js'
import type { EndedSessions, SessionEnd } from './ended-sessions.js'
import { ABSOLUTE_SECONDS } from './provider-session.js'

const KEPT_MS = ABSOLUTE_SECONDS * 1000
const ASK_AGAIN_MS = 1_000

/** Ends of sessions as gateways tell each other of them: at once to those that listen, and kept for those that do not. */
export class RedisEnds {
  readonly #link: RedisLink
  readonly #subscriber: Redis
  readonly #ended: EndedSessions
  readonly #now: () => number
  readonly #listKey: string
  readonly #channel: string
  #caughtUp: () => void = () => undefined
  #timer: NodeJS.Timeout | null = null

  constructor(link: RedisLink, prefix: string, ended: EndedSessions, now: () => number) {
    this.#link = link
    this.#ended = ended
    this.#now = now
    this.#listKey = `${prefix}ended`
    this.#channel = `${prefix}ends`
    this.#subscriber = link.subscriber()
    this.#subscriber.on('message', (_channel, text) => this.#note(text))
    // Listens first, and then asks for what was told before.
    this.#subscriber.on('ready', () => void this.#listen())
    link.redis.on('ready', () => void this.#catchUp())
  }

  /** Resolves when the ends that others know of are known here, or Redis has turned out to be away. */
  async ready(): Promise<void> {
    const caughtUp = new Promise<void>((resolve) => {
      this.#caughtUp = resolve
    })
    await this.#link.ready()
    if (!this.#link.isUp) return
    void this.#catchUp()
    await caughtUp
  }

  /** Rejects where the others could not be told. `alsoDelete` goes with it, or not at all. */
  async tell(end: SessionEnd, alsoDelete: string | null): Promise<void> {
    const text = JSON.stringify(end)
    const told = this.#link.redis
      .multi()
      .zadd(this.#listKey, end.at, text)
      .zremrangebyscore(this.#listKey, 0, end.at - KEPT_MS)
      .pexpire(this.#listKey, KEPT_MS)
      .publish(this.#channel, text)
    if (alsoDelete !== null) told.del(alsoDelete)
    const fault = (await told.exec())?.find(([error]) => error !== null)
    if (fault !== undefined) throw fault[0]
  }

  close(): void {
    this.#subscriber.disconnect()
    if (this.#timer !== null) clearTimeout(this.#timer)
  }

  async #listen(): Promise<void> {
    await this.#link.orElse(() => this.#subscriber.subscribe(this.#channel), null)
    if (this.#link.isUp) await this.#catchUp()
  }

  async #catchUp(): Promise<void> {
    const since = this.#now() - KEPT_MS
    const ends = await this.#link.orElse((redis) => redis.zrangebyscore(this.#listKey, since, '+inf'), null)
    for (const text of ends ?? []) this.#note(text)
    this.#caughtUp()
    // Not to know of an end lets somebody in; after a lost connection it is asked for anyway.
    if (ends === null && this.#link.isUp) this.#timer = setTimeout(() => void this.#catchUp(), ASK_AGAIN_MS).unref()
  }

  /** What is there may be from another version, or from somebody else. */
  #note(text: string): void {
    const { key, at } = parsed(text)
    if (typeof key === 'string' && typeof at === 'number') this.#ended.note({ key, at })
  }
}

const parsed = (text: string): Partial<Record<keyof SessionEnd, unknown>> => {
  try {
    return JSON.parse(text) ?? {}
  } catch {
    return {}
  }
}
