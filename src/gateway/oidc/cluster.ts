import { createHash } from 'node:crypto'
import type { Redis } from 'ioredis'
import { RedisLink, type RedisLinkOptions } from '../redis-connection.js'
import type { ProviderTokens } from './client.js'
import { ABSOLUTE_SECONDS, type ProviderSession, type Sealer } from './session.js'
import { LATE_MS, type LocalSessionMemory, type SessionMemory } from './session-memory.js'

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

/**
 * Longer than the work can take, which is up to four answers of a provider and one of the backend, five seconds each: who
 * holds the turn for longer has died with it.
 */
const TURN_MS = 30_000
const POLL_MS = 25

/** Work that several gateways are asked for, and one of them does. */
export class RedisTurns {
  readonly #link: RedisLink
  readonly #prefix: string
  readonly #sealer: Sealer

  constructor(link: RedisLink, prefix: string, sealer: Sealer) {
    this.#link = link
    this.#prefix = prefix
    this.#sealer = sealer
  }

  /** The first to come does the work and leaves its result for the others, who look for it until then. */
  async once<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const [turnKey, resultKey] = [`${this.#prefix}turn:${key}`, `${this.#prefix}result:${key}`]
    const deadline = performance.now() + TURN_MS
    while (performance.now() < deadline) {
      const left = await this.#link.orElse((redis) => redis.get(resultKey), undefined)
      if (left === undefined) return work()
      const opened = left === null ? null : await this.#sealer.open(left)
      if (opened !== null) return opened.result as Result
      const mine = await this.#link.orElse((redis) => redis.set(turnKey, '1', 'PX', TURN_MS, 'NX'), undefined)
      if (mine === undefined) return work()
      if (mine === 'OK') return this.#doAndLeave(turnKey, resultKey, work)
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    }
    return work()
  }

  async #doAndLeave<Result>(turnKey: string, resultKey: string, work: () => Promise<Result>): Promise<Result> {
    try {
      const result = await work()
      const sealed = await this.#sealer.seal({ result }, Math.ceil(LATE_MS / 1000))
      await this.#link.orElse((redis) => redis.set(resultKey, sealed, 'PX', LATE_MS), null)
      return result
    } finally {
      await this.#link.orElse((redis) => redis.del(turnKey), 0)
    }
  }
}

/** By what a session is known to whoever ends it. */
export type SessionName =
  | { readonly kind: 'id'; readonly value: string }
  /** All that belong to one session at the provider. */
  | { readonly kind: 'providerSession'; readonly value: string }
  /** All of one person; or only those of which the provider never said to which session there they belong. */
  | { readonly kind: 'subject' | 'unnamedOfSubject'; readonly value: string }
  /** A message that ended sessions, and must not do so twice. */
  | { readonly kind: 'message'; readonly value: string }

/** An end as gateways tell each other of it. */
export interface SessionEnd {
  readonly key: string
  /** Those that started up to then have ended; in milliseconds since 1970. */
  readonly at: number
}

const MAX_KEPT = 100_000

/**
 * Which sessions have ended though their cookies are still good: a cookie that was cleared in one answer may be set once
 * more by another that was on its way. Known for as long as such a cookie could live.
 */
export class EndedSessions {
  // In the order in which they were noted, which is nearly that in which they can be forgotten.
  readonly #ends = new Map<string, number>()
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  note({ key, at }: SessionEnd): void {
    this.#forgetOld()
    const known = this.#ends.get(key) ?? 0
    this.#ends.delete(key)
    this.#ends.set(key, Math.max(known, at))
  }

  has({ id, providerSession, subject, startedAt }: ProviderSession): boolean {
    if (this.#ends.size === 0) return false
    const names: readonly SessionName[] = [
      { kind: 'id', value: id },
      { kind: 'subject', value: subject },
      providerSession === null
        ? { kind: 'unnamedOfSubject', value: subject }
        : { kind: 'providerSession', value: providerSession }
    ]
    return names.some((name) => startedAt <= (this.#ends.get(keyOf(name)) ?? -1))
  }

  knows(name: SessionName): boolean {
    return this.#ends.has(keyOf(name))
  }

  #forgetOld(): void {
    for (const [key, at] of this.#ends) {
      if (this.#ends.size < MAX_KEPT && at > this.#now() - ABSOLUTE_SECONDS * 1000) return
      this.#ends.delete(key)
    }
  }
}

/** Short, and says nothing about anybody. */
export const keyOf = ({ kind, value }: SessionName): string =>
  `${kind}:${createHash('sha256').update(value).digest('base64url')}`

export interface RedisSessionMemoryOptions {
  readonly url: string
  /** Who gave the sessions their names: other providers' are in the same Redis perhaps. */
  readonly realm: string
  /** Does everything while Redis is away. */
  readonly local: LocalSessionMemory
  /** What is in Redis is sealed: it holds tokens. */
  readonly sealer: Sealer
  readonly log: RedisLinkOptions['log']
  readonly now: () => number
}

/** The memory that several gateways share. While Redis is away each has its own, and the log says so once per outage. */
export class RedisSessionMemory implements SessionMemory {
  readonly #link: RedisLink
  readonly #ends: RedisEnds
  readonly #turns: RedisTurns
  readonly #local: LocalSessionMemory
  readonly #sealer: Sealer
  readonly #now: () => number
  readonly #prefix: string

  constructor({ url, realm, local, sealer, log, now }: RedisSessionMemoryOptions) {
    this.#local = local
    this.#sealer = sealer
    this.#now = now
    this.#prefix = `gatehouse:oidc:${createHash('sha256').update(realm).digest('base64url').slice(0, 11)}:`
    this.#link = new RedisLink({
      url,
      log,
      saidWhenAway: 'Redis is away: provider sessions are known to this instance alone',
      saidWhenBack: 'Redis is back: provider sessions are known to all instances'
    })
    this.#ends = new RedisEnds(this.#link, this.#prefix, local.ended, now)
    this.#turns = new RedisTurns(this.#link, this.#prefix, sealer)
  }

  ready(): Promise<void> {
    return this.#ends.ready()
  }

  async keepTokens(sessionId: string, tokens: ProviderTokens): Promise<void> {
    await this.#local.keepTokens(sessionId, tokens)
    const sealed = await this.#sealer.seal({ tokens }, ABSOLUTE_SECONDS)
    await this.#link.orElse((redis) => redis.set(this.#tokensKey(sessionId), sealed, 'EX', ABSOLUTE_SECONDS), null)
  }

  async tokensOf(sessionId: string): Promise<ProviderTokens | null> {
    const sealed = await this.#link.orElse((redis) => redis.get(this.#tokensKey(sessionId)), null)
    const content = sealed === null ? null : await this.#sealer.open(sealed)
    return content === null ? this.#local.tokensOf(sessionId) : (content.tokens as ProviderTokens)
  }

  async end(name: SessionName): Promise<void> {
    await this.#local.end(name)
    const tokens = name.kind === 'id' ? this.#tokensKey(name.value) : null
    await this.#ends.tell({ key: keyOf(name), at: this.#now() }, tokens)
  }

  hasEnded(session: ProviderSession): boolean {
    return this.#local.hasEnded(session)
  }

  knows(name: SessionName): boolean {
    return this.#local.knows(name)
  }

  once<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    return this.#local.once(key, () => this.#turns.once(key, work))
  }

  close(): void {
    this.#ends.close()
    this.#link.close()
    this.#local.close()
  }

  #tokensKey(sessionId: string): string {
    return `${this.#prefix}tokens:${sessionId}`
  }
}
