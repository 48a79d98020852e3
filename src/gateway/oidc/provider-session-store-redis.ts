import { createHash } from 'node:crypto'
import { RedisConnection, type RedisConnectionOptions } from '../redis-connection.js'
import { RedisRevocations } from '../revocation/redis-revocations.js'
import type { ProviderTokens } from './provider-client.js'
import { MAX_SESSION_SECONDS, type ProviderSession } from './provider-session-cookie.js'
import {
  type MemoryProviderSessionStore,
  type ProviderSessionSelector,
  type ProviderSessionStore,
  RESULT_REUSE_MS,
  selectorKey
} from './provider-session-store.js'
import type { Sealer } from './sealer.js'

// The session state that several gateways share through Redis. During a rolling update, gateways of different versions use
// the same keys, channels and values.

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
    // Version 0.1.0 stores results of another form as `result:`.
    const [lockKey, resultKey] = [`${this.#prefix}turn:${key}`, `${this.#prefix}exchange:${key}`]
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

export interface RedisProviderSessionStoreOptions extends Pick<RedisConnectionOptions, 'redis' | 'log'> {
  /** Separates the keys of different providers and clients in one Redis. */
  readonly realm: string
  /** Used while Redis is unavailable. */
  readonly local: MemoryProviderSessionStore
  /** Encrypts tokens and results in Redis. */
  readonly sealer: Sealer
  readonly now: () => number
  /** How often losses of Redis are looked for. Tests set a shorter interval. */
  readonly checkIntervalMs?: number
}

/** Session store of several gateways. While Redis is unavailable, each gateway uses its own memory store. */
export class RedisProviderSessionStore implements ProviderSessionStore {
  readonly #connection: RedisConnection
  readonly #revocations: RedisRevocations
  readonly #locks: RedisLocks
  readonly #local: MemoryProviderSessionStore
  readonly #sealer: Sealer
  readonly #now: () => number
  readonly #prefix: string

  constructor({ realm, local, sealer, now, checkIntervalMs, ...connection }: RedisProviderSessionStoreOptions) {
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
    this.#revocations = new RedisRevocations({
      connection: this.#connection,
      prefix: this.#prefix,
      revocations: local.revocations,
      ttlMs: MAX_SESSION_SECONDS * 1000,
      now,
      checkIntervalMs
    })
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

  async revoke(selector: ProviderSessionSelector): Promise<void> {
    await this.#local.revoke(selector)
    const tokensKey = selector.kind === 'id' ? this.#tokensKey(selector.value) : null
    await this.#revocations.publish({ key: selectorKey(selector), at: this.#now() }, tokensKey)
  }

  isRevoked(session: ProviderSession): boolean {
    return this.#local.isRevoked(session)
  }

  hasRevocation(selector: ProviderSessionSelector): boolean {
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
