import { createHash } from 'node:crypto'
import { Redis } from 'ioredis'
import type { Logger } from 'pino'
import { keyOf, type SessionEnd, type SessionName } from './ended-sessions.js'
import { ABSOLUTE_SECONDS, type ProviderSession } from './provider-session.js'
import type { ProviderTokens } from './relying-party.js'
import type { Sealer } from './sealer.js'
import { LATE_MS, type LocalSessionMemory, type SessionMemory } from './session-memory.js'

const COMMAND_TIMEOUT_MS = 500
const CONNECT_TIMEOUT_MS = 2_000
const READY_TIMEOUT_MS = 3_000

/** Longer than the work can take: who holds the turn for longer has died with it. */
const TURN_MS = 15_000
const POLL_MS = 25

export interface RedisSessionMemoryOptions {
  readonly url: string
  /** Who gave the sessions their names: other providers' are in the same Redis perhaps. */
  readonly realm: string
  /** Does everything while Redis is away. */
  readonly local: LocalSessionMemory
  /** What is in Redis is sealed: it holds tokens. */
  readonly sealer: Sealer
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly now: () => number
}

/** The memory that several gateways share. While Redis is away each has its own, and the log says so once per outage. */
export class RedisSessionMemory implements SessionMemory {
  readonly #redis: Redis
  readonly #subscriber: Redis
  readonly #local: LocalSessionMemory
  readonly #sealer: Sealer
  readonly #log: RedisSessionMemoryOptions['log']
  readonly #now: () => number
  readonly #prefix: string
  #away = false
  #caughtUp: () => void = () => undefined

  constructor({ url, realm, local, sealer, log, now }: RedisSessionMemoryOptions) {
    this.#local = local
    this.#sealer = sealer
    this.#log = log
    this.#now = now
    this.#prefix = `gatehouse:oidc:${createHash('sha256').update(realm).digest('base64url').slice(0, 11)}:`
    const options = {
      connectTimeout: CONNECT_TIMEOUT_MS,
      // Nobody waits for a reconnect: without a connection the command fails at once.
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      retryStrategy: (attempt: number) => Math.min(attempt * 100, 2_000)
    }
    this.#redis = new Redis(url, { ...options, commandTimeout: COMMAND_TIMEOUT_MS })
    this.#subscriber = new Redis(url, { ...options, autoResubscribe: false })
    // ioredis says so at every attempt to reconnect; the outage itself is told where a command meets it.
    for (const redis of [this.#redis, this.#subscriber]) redis.on('error', () => undefined)
    this.#subscriber.on('message', (_channel, text) => this.#noteText(text))
    this.#subscriber.on('ready', () => void this.#listen())
    this.#redis.on('ready', () => void this.#catchUp())
  }

  /** Resolves when the ends that others know of are known here, or Redis has turned out to be away. */
  async ready(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#caughtUp = resolve
      if (this.#redis.status === 'ready') void this.#catchUp()
      this.#redis.once('close', resolve)
      setTimeout(resolve, READY_TIMEOUT_MS).unref()
    })
    this.#tell(this.#redis.status !== 'ready')
  }

  async keepTokens(sessionId: string, tokens: ProviderTokens): Promise<void> {
    await this.#local.keepTokens(sessionId, tokens)
    const sealed = await this.#sealer.seal({ tokens }, ABSOLUTE_SECONDS)
    await this.#orElse(() => this.#redis.set(this.#key('tokens', sessionId), sealed, 'EX', ABSOLUTE_SECONDS), null)
  }

  async tokensOf(sessionId: string): Promise<ProviderTokens | null> {
    const sealed = await this.#orElse(() => this.#redis.get(this.#key('tokens', sessionId)), null)
    const content = sealed === null ? null : await this.#sealer.open(sealed)
    return content === null ? this.#local.tokensOf(sessionId) : (content.tokens as ProviderTokens)
  }

  async end(name: SessionName): Promise<void> {
    await this.#local.end(name)
    const at = this.#now()
    const text = JSON.stringify({ key: keyOf(name), at } satisfies SessionEnd)
    const told = this.#redis
      .multi()
      // Kept beside the message for gateways that do not hear it.
      .zadd(this.#key('ended'), at, text)
      .zremrangebyscore(this.#key('ended'), 0, at - ABSOLUTE_SECONDS * 1000)
      .publish(this.#key('ends'), text)
    if (name.kind === 'id') told.del(this.#key('tokens', name.value))
    await told.exec()
  }

  hasEnded(session: ProviderSession): boolean {
    return this.#local.hasEnded(session)
  }

  once<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    return this.#local.once(key, () => this.#onceAmongGateways(key, work))
  }

  close(): void {
    this.#redis.disconnect()
    this.#subscriber.disconnect()
    this.#local.close()
  }

  /** The first to come does the work and leaves its result for the others, who look for it until then. */
  async #onceAmongGateways<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const [turnKey, resultKey] = [this.#key('turn', key), this.#key('result', key)]
    const deadline = performance.now() + TURN_MS
    while (performance.now() < deadline) {
      const left = await this.#orElse(() => this.#redis.get(resultKey), undefined)
      if (left === undefined) return work()
      const opened = left === null ? null : await this.#sealer.open(left)
      if (opened !== null) return opened.result as Result
      const mine = await this.#orElse(() => this.#redis.set(turnKey, '1', 'PX', TURN_MS, 'NX'), undefined)
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
      await this.#orElse(() => this.#redis.set(resultKey, sealed, 'PX', LATE_MS), null)
      return result
    } finally {
      await this.#orElse(() => this.#redis.del(turnKey), 0)
    }
  }

  /** From now on this gateway hears of every end; of those before, it then asks. */
  async #listen(): Promise<void> {
    await this.#orElse(() => this.#subscriber.subscribe(this.#key('ends')), null)
    if (this.#redis.status === 'ready') await this.#catchUp()
  }

  async #catchUp(): Promise<void> {
    const since = this.#now() - ABSOLUTE_SECONDS * 1000
    const ends = await this.#orElse(() => this.#redis.zrangebyscore(this.#key('ended'), since, '+inf'), [])
    for (const text of ends) this.#noteText(text)
    this.#caughtUp()
  }

  #key(kind: 'tokens' | 'turn' | 'result' | 'ended' | 'ends', name = ''): string {
    return `${this.#prefix}${kind}${name && `:${name}`}`
  }

  #noteText(text: string): void {
    const { key, at } = JSON.parse(text) as SessionEnd
    this.#local.ended.note({ key, at })
  }

  async #orElse<Result, Other>(command: () => Promise<Result>, other: Other): Promise<Result | Other> {
    try {
      const result = await command()
      this.#tell(false)
      return result
    } catch (error) {
      this.#tell(true, error)
      return other
    }
  }

  #tell(away: boolean, error?: unknown): void {
    if (away === this.#away) return
    this.#away = away
    if (away) this.#log.warn({ err: error }, 'Redis is away: provider sessions are known to this instance alone')
    else this.#log.info('Redis is back: provider sessions are known to all instances')
  }
}
