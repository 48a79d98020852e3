import { jsonOrUndefined } from '../../shared/json-or-undefined.js'
import type { RedisClient, RedisConnection } from '../redis-connection.js'
import type { Revocation, Revocations } from './revocations.js'

/** Revocations in one script call, so that none blocks Redis for long. */
const BATCH_SIZE = 500

/** Stores revocations and publishes those that were not stored yet. KEYS: list. ARGV: TTL, oldest time, channel, time, text, … */
const STORE_SCRIPT = `
for i = 4, #ARGV, 2 do
  if redis.call('ZADD', KEYS[1], ARGV[i], ARGV[i + 1]) == 1 then
    redis.call('PUBLISH', ARGV[3], ARGV[i + 1])
  end
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
`

const RETRY_MS = 1_000
const MAX_RETRY_MS = 30_000
const CHECK_INTERVAL_MS = 60_000
const MAX_KEYS_TO_DELETE = 10_000

export interface RedisRevocationsOptions {
  readonly connection: RedisConnection
  readonly prefix: string
  /** The revocations of this gateway. */
  readonly revocations: Revocations
  /** How long revocations are kept: the longest lifetime of what they apply to. */
  readonly ttlMs: number
  readonly now: () => number
  /** Called after revocations of other gateways were added. */
  readonly added?: () => void
  /** Tests set a shorter interval. */
  readonly checkIntervalMs?: number | undefined
}

/**
 * Distributes revocations: published to running gateways, and stored for those that start or reconnect later. Each gateway
 * also stores and publishes the revocations that Redis does not have, because it was unavailable or has lost its data.
 */
export class RedisRevocations {
  readonly #connection: RedisConnection
  readonly #revocations: Revocations
  readonly #ttlMs: number
  readonly #now: () => number
  readonly #added: () => void
  readonly #listKey: string
  readonly #channel: string
  #onLoaded: () => void = () => undefined
  #isLoaded = false
  #isSynchronising = false
  #isRequested = false
  #retryMs = RETRY_MS
  /** Set while Redis rejects writes. Until it fires, revocations are only loaded. */
  #retryTimer: NodeJS.Timeout | null = null
  readonly #checkTimer: NodeJS.Timeout
  /** Keys of revoked sessions that could not be deleted yet. */
  readonly #keysToDelete = new Set<string>()

  constructor(options: RedisRevocationsOptions) {
    const { connection, prefix, checkIntervalMs = CHECK_INTERVAL_MS, added = () => undefined } = options
    this.#connection = connection
    this.#revocations = options.revocations
    this.#ttlMs = options.ttlMs
    this.#now = options.now
    this.#added = added
    this.#listKey = `${prefix}ended`
    this.#channel = `${prefix}ends`
    void connection.subscribe({
      channel: this.#channel,
      message: (text) => {
        if (this.#add(text)) this.#added()
      },
      // Loaded after subscribing, so that no revocation is missed in between.
      subscribed: () => {
        if (connection.isUp) this.#synchronise()
      }
    })
    connection.onUp(() => this.#synchronise())
    this.#checkTimer = setInterval(() => void this.#check(), checkIntervalMs).unref()
  }

  /** Whether the stored revocations were loaded since this gateway started. */
  get isLoaded(): boolean {
    return this.#isLoaded
  }

  /** Whether revocations of other gateways arrive at present. */
  get isConnected(): boolean {
    return this.#connection.isUp
  }

  /** Resolves when the stored revocations are loaded, or when Redis is known to be unavailable. */
  async ready(): Promise<void> {
    const loaded = new Promise<void>((resolve) => {
      this.#onLoaded = resolve
    })
    await this.#connection.ready()
    if (!this.#connection.isUp) return
    this.#synchronise()
    await loaded
  }

  /**
   * Stores and publishes a revocation that this gateway already has, and deletes the key. Rejects if Redis is unavailable;
   * both are repeated later.
   */
  async publish(revocation: Revocation, keyToDelete: string | null): Promise<void> {
    if (keyToDelete !== null && this.#keysToDelete.size < MAX_KEYS_TO_DELETE) this.#keysToDelete.add(keyToDelete)
    try {
      await this.#connection.send((redis) => this.#store(redis, [revocation]))
    } catch (error) {
      if (this.#connection.isUp) this.#retryLater()
      throw error
    }
    await this.#deleteKeys()
  }

  close(): void {
    clearInterval(this.#checkTimer)
    if (this.#retryTimer !== null) clearTimeout(this.#retryTimer)
  }

  /** Starts a run, or another one if one is running: it may have read before the event that this call is for. */
  #synchronise(): void {
    this.#isRequested = true
    if (!this.#isSynchronising) void this.#runRequested()
  }

  async #runRequested(): Promise<void> {
    this.#isSynchronising = true
    while (this.#isRequested) {
      this.#isRequested = false
      await this.#run()
    }
    this.#isSynchronising = false
  }

  /** Loads the stored revocations, then stores those that Redis does not have. Never rejects. */
  async #run(): Promise<void> {
    const since = this.#now() - this.#ttlMs
    const stored = await this.#connection.run((redis) => redis.zrangebyscore(this.#listKey, since, '+inf'), null)
    // Before the stored ones are added, which may evict others.
    const missing = stored === null ? [] : this.#missingIn(new Set(stored), since)
    const added = (stored ?? []).filter((text) => this.#add(text))
    if (stored !== null) this.#isLoaded = true
    if (added.length > 0) this.#added()
    this.#onLoaded()
    if (stored === null) {
      // After a lost connection, `onUp` starts the next run.
      if (this.#connection.isUp) this.#retryLater()
      return
    }
    if (this.#retryTimer !== null) return
    const isStored = (await this.#storeAll(missing)) && (await this.#deleteKeys())
    if (isStored) this.#retryMs = RETRY_MS
    else this.#retryLater()
  }

  #missingIn(stored: ReadonlySet<string>, since: number): readonly Revocation[] {
    return this.#revocations.since(since).filter((revocation) => !stored.has(JSON.stringify(revocation)))
  }

  /** Whether Redis has stored all of them. */
  async #storeAll(revocations: readonly Revocation[]): Promise<boolean> {
    for (let start = 0; start < revocations.length; start += BATCH_SIZE) {
      const batch = revocations.slice(start, start + BATCH_SIZE)
      const result = await this.#connection.run((redis) => this.#store(redis, batch), null)
      if (result === null) return false
    }
    return true
  }

  #store(redis: RedisClient, revocations: readonly Revocation[]): Promise<unknown> {
    const entries = revocations.flatMap((revocation) => [revocation.at, JSON.stringify(revocation)])
    return redis.eval(STORE_SCRIPT, 1, this.#listKey, this.#ttlMs, this.#now() - this.#ttlMs, this.#channel, ...entries)
  }

  /** Whether all were deleted. One command each: in a Redis Cluster the keys are on different servers. */
  async #deleteKeys(): Promise<boolean> {
    for (const key of this.#keysToDelete) {
      const result = await this.#connection.run((redis) => redis.del(key), null)
      if (result === null) return false
      this.#keysToDelete.delete(key)
    }
    return true
  }

  /** Waits longer after each failure: a server that rejects writes may do so for hours. */
  #retryLater(): void {
    if (this.#retryTimer !== null) return
    this.#retryTimer = setTimeout(() => {
      this.#retryTimer = null
      this.#synchronise()
    }, this.#retryMs).unref()
    this.#retryMs = Math.min(2 * this.#retryMs, MAX_RETRY_MS)
  }

  /** Detects losses without a lost connection, for example after the failover of a shard of a Redis Cluster. */
  async #check(): Promise<void> {
    if (!this.#connection.isUp || this.#retryTimer !== null) return
    const since = this.#now() - this.#ttlMs
    const count = await this.#connection.run((redis) => redis.zcount(this.#listKey, since, '+inf'), null)
    if (count !== null && count !== this.#revocations.since(since).length) this.#synchronise()
  }

  /** Whether the revocation is new. Ignores malformed entries: they may come from another version or another program. */
  #add(text: string): boolean {
    const { key, at }: Partial<Record<keyof Revocation, unknown>> = Object(jsonOrUndefined(text))
    return typeof key === 'string' && typeof at === 'number' && this.#revocations.add({ key, at })
  }
}
