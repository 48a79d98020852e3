import { createHash } from 'node:crypto'
import { type RedisClient, RedisConnection, type RedisConnectionOptions } from '../redis-connection.js'
import type { ProviderTokens } from './provider-client.js'
import { MAX_SESSION_SECONDS, type ProviderSession } from './provider-session.js'
import type { Sealer } from './sealer.js'
import {
  type MemorySessionStore,
  RESULT_REUSE_MS,
  type Revocation,
  type Revocations,
  revocationKey,
  type SessionSelector,
  type SessionStore
} from './session-store.js'

// The session state that several gateways share through Redis. During a rolling update, gateways of different versions use
// the same keys, channels and values.

const REVOCATION_TTL_MS = MAX_SESSION_SECONDS * 1000
const RELOAD_RETRY_MS = 1_000

/** Revocations in one transaction, so that none blocks Redis for long. */
const BATCH_SIZE = 500

/**
 * Distributes revocations: published to running gateways, and stored for those that start or reconnect later. Each gateway
 * restores what Redis does not have, because it was unavailable or has lost its data.
 */
class RedisRevocations {
  readonly #connection: RedisConnection
  readonly #revocations: Revocations
  readonly #now: () => number
  readonly #listKey: string
  readonly #channel: string
  #onLoaded: () => void = () => undefined
  #timer: NodeJS.Timeout | null = null

  constructor(connection: RedisConnection, prefix: string, revocations: Revocations, now: () => number) {
    this.#connection = connection
    this.#revocations = revocations
    this.#now = now
    this.#listKey = `${prefix}ended`
    this.#channel = `${prefix}ends`
    void connection.subscribe({
      channel: this.#channel,
      message: (text) => this.#add(text),
      // Loaded after subscribing, so that no revocation is missed in between.
      subscribed: () => {
        if (connection.isUp) void this.#synchronise()
      }
    })
    connection.onUp(() => void this.#synchronise())
  }

  /** Resolves when the stored revocations are loaded, or when Redis is known to be unavailable. */
  async ready(): Promise<void> {
    const loaded = new Promise<void>((resolve) => {
      this.#onLoaded = resolve
    })
    await this.#connection.ready()
    if (!this.#connection.isUp) return
    void this.#synchronise()
    await loaded
  }

  /**
   * Stores and publishes a revocation that this gateway already has, then deletes the key. Rejects if Redis is unavailable;
   * the revocation is then published when it is available again.
   */
  async publish(revocation: Revocation, keyToDelete: string | null): Promise<void> {
    try {
      await this.#connection.send((redis) => this.#store(redis, [revocation]))
    } catch (error) {
      this.#synchroniseLater()
      throw error
    }
    // Not in the transaction: in a Redis Cluster the key is on another server.
    if (keyToDelete !== null) await this.#connection.send((redis) => redis.del(keyToDelete))
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
  }

  async #store(redis: RedisClient, revocations: readonly Revocation[]): Promise<void> {
    const entries = revocations.map((revocation) => ({ at: revocation.at, text: JSON.stringify(revocation) }))
    const transaction = redis
      .multi()
      .zadd(this.#listKey, ...entries.flatMap(({ at, text }) => [at, text]))
      .zremrangebyscore(this.#listKey, 0, this.#now() - REVOCATION_TTL_MS)
      .pexpire(this.#listKey, REVOCATION_TTL_MS)
    for (const { text } of entries) transaction.publish(this.#channel, text)
    const failed = (await transaction.exec())?.find(([error]) => error !== null)
    if (failed !== undefined) throw failed[0]
  }

  /** Loads the stored revocations, then stores and publishes those that Redis does not have. */
  async #synchronise(): Promise<void> {
    const since = this.#now() - REVOCATION_TTL_MS
    const stored = await this.#connection.run((redis) => redis.zrangebyscore(this.#listKey, since, '+inf'), null)
    for (const text of stored ?? []) this.#add(text)
    this.#onLoaded()
    if (stored === null || !(await this.#storeMissing(new Set(stored), since))) this.#synchroniseLater()
  }

  /** Whether Redis has all revocations now. */
  async #storeMissing(stored: ReadonlySet<string>, since: number): Promise<boolean> {
    const missing = [...this.#revocations.all()].filter(
      (revocation) => revocation.at > since && !stored.has(JSON.stringify(revocation))
    )
    for (let start = 0; start < missing.length; start += BATCH_SIZE) {
      const batch = missing.slice(start, start + BATCH_SIZE)
      const result = await this.#connection.run((redis) => this.#store(redis, batch), null)
      if (result === null) return false
    }
    return true
  }

  /** For a failure that Redis may recover from. After a lost connection, `onUp` synchronises. */
  #synchroniseLater(): void {
    if (!this.#connection.isUp) return
    this.#timer ??= setTimeout(() => {
      this.#timer = null
      void this.#synchronise()
    }, RELOAD_RETRY_MS).unref()
  }

  /** Ignores malformed entries: they may come from another version or another program. */
  #add(text: string): void {
    const { key, at } = parseRevocation(text)
    if (typeof key === 'string' && typeof at === 'number') this.#revocations.add({ key, at })
  }
}

const parseRevocation = (text: string): Partial<Record<keyof Revocation, unknown>> => {
  try {
    return JSON.parse(text) ?? {}
  } catch {
    return {}
  }
}

/**
 * Exceeds the longest possible work, which is four provider responses and one backend response of 5 s each. A gateway that
 * holds a lock for longer has crashed.
 */
const LOCK_LEASE_MS = 30_000
const LOCK_POLL_MS = 25

/** Runs work on one gateway and shares its result with the others that requested it. */
class RedisLocks {
  readonly #connection: RedisConnection
  readonly #prefix: string
  readonly #sealer: Sealer

  constructor(connection: RedisConnection, prefix: string, sealer: Sealer) {
    this.#connection = connection
    this.#prefix = prefix
    this.#sealer = sealer
  }

  /** The gateway that gets the lock does the work; the others poll for its result. Without Redis, each does the work. */
  async runOnce<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const [lockKey, resultKey] = [`${this.#prefix}turn:${key}`, `${this.#prefix}result:${key}`]
    const deadline = performance.now() + LOCK_LEASE_MS
    while (performance.now() < deadline) {
      const stored = await this.#connection.run((redis) => redis.get(resultKey), undefined)
      if (stored === undefined) return work()
      const opened = stored === null ? null : await this.#sealer.open(stored)
      // Only gateways can seal a result, and a key is used for one kind of work only.
      if (opened !== null) return opened.result as Result
      const locked = await this.#connection.run(
        (redis) => redis.set(lockKey, '1', 'PX', LOCK_LEASE_MS, 'NX'),
        undefined
      )
      if (locked === undefined) return work()
      if (locked === 'OK') return this.#runLocked(lockKey, resultKey, work)
      await new Promise((resolve) => setTimeout(resolve, LOCK_POLL_MS))
    }
    return work()
  }

  async #runLocked<Result>(lockKey: string, resultKey: string, work: () => Promise<Result>): Promise<Result> {
    try {
      const result = await work()
      const sealed = await this.#sealer.seal({ result }, Math.ceil(RESULT_REUSE_MS / 1000))
      await this.#connection.run((redis) => redis.set(resultKey, sealed, 'PX', RESULT_REUSE_MS), null)
      return result
    } finally {
      await this.#connection.run((redis) => redis.del(lockKey), 0)
    }
  }
}

export interface RedisSessionStoreOptions extends Pick<RedisConnectionOptions, 'url' | 'log' | 'timeouts'> {
  /** Separates the keys of different providers and clients in one Redis. */
  readonly realm: string
  /** Used while Redis is unavailable. */
  readonly local: MemorySessionStore
  /** Encrypts tokens and results in Redis. */
  readonly sealer: Sealer
  readonly now: () => number
}

/** Session store of several gateways. While Redis is unavailable, each gateway uses its own memory store. */
export class RedisSessionStore implements SessionStore {
  readonly #connection: RedisConnection
  readonly #revocations: RedisRevocations
  readonly #locks: RedisLocks
  readonly #local: MemorySessionStore
  readonly #sealer: Sealer
  readonly #now: () => number
  readonly #prefix: string

  constructor({ realm, local, sealer, now, ...connection }: RedisSessionStoreOptions) {
    this.#local = local
    this.#sealer = sealer
    this.#now = now
    this.#prefix = `gatehouse:oidc:${createHash('sha256').update(realm).digest('base64url').slice(0, 11)}:`
    this.#connection = new RedisConnection({
      ...connection,
      messages: {
        down: 'Redis unavailable, provider sessions local to this instance',
        up: 'Redis available, provider sessions shared by all instances'
      }
    })
    this.#revocations = new RedisRevocations(this.#connection, this.#prefix, local.revocations, now)
    this.#locks = new RedisLocks(this.#connection, this.#prefix, sealer)
  }

  ready(): Promise<void> {
    return this.#revocations.ready()
  }

  async saveTokens(sessionId: string, tokens: ProviderTokens): Promise<void> {
    await this.#local.saveTokens(sessionId, tokens)
    const sealed = await this.#sealer.seal({ tokens }, MAX_SESSION_SECONDS)
    await this.#connection.run(
      (redis) => redis.set(this.#tokensKey(sessionId), sealed, 'EX', MAX_SESSION_SECONDS),
      null
    )
  }

  async loadTokens(sessionId: string): Promise<ProviderTokens | null> {
    const sealed = await this.#connection.run((redis) => redis.get(this.#tokensKey(sessionId)), null)
    const content = sealed === null ? null : await this.#sealer.open(sealed)
    // Only `saveTokens` seals content for this key.
    return content === null ? this.#local.loadTokens(sessionId) : (content.tokens as ProviderTokens)
  }

  async revoke(selector: SessionSelector): Promise<void> {
    await this.#local.revoke(selector)
    const tokensKey = selector.kind === 'id' ? this.#tokensKey(selector.value) : null
    await this.#revocations.publish({ key: revocationKey(selector), at: this.#now() }, tokensKey)
  }

  isRevoked(session: ProviderSession): boolean {
    return this.#local.isRevoked(session)
  }

  hasRevocation(selector: SessionSelector): boolean {
    return this.#local.hasRevocation(selector)
  }

  runOnce<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    return this.#local.runOnce(key, () => this.#locks.runOnce(key, work))
  }

  close(): void {
    this.#revocations.close()
    this.#connection.close()
    this.#local.close()
  }

  #tokensKey(sessionId: string): string {
    return `${this.#prefix}tokens:${sessionId}`
  }
}
