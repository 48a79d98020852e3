import { createHmac, randomBytes } from 'node:crypto'
import rateLimitPlugin, { type FastifyRateLimitStoreCtor, normalizeIP } from '@fastify/rate-limit'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { monotonicMs } from '../../shared/monotonic.js'
import { isLoginAttempt } from '../access.js'
import type { GatewayConfig } from '../config.js'
import { GatewayError } from '../errors.js'

const SWEEP_MS = 5 * 60_000

export interface MemoryAttemptsOptions {
  readonly windowMs: number
  /** How many keys have a count of their own, at most. */
  readonly maxKeys?: number
  /** How many counts those that come later share. */
  readonly sharedCounts?: number
  /** Windows must end in the order in which they began, so it may only go forward. */
  readonly now?: () => number
}

interface Count {
  attempts: number
  readonly endsAt: number
}

/**
 * Counts attempts per key in fixed windows. It is bounded, and no count is dropped before its window ends: when an attack
 * has filled it, further keys share a set of counts, picked by a hash that nobody outside can foresee. So memory stays
 * flat, nobody's count starts anew early, and a newcomer is limited too early only if an attacker met the same count.
 */
export class MemoryAttempts {
  // All windows are equally long, so the order of insertion is the order in which they end.
  readonly #counts = new Map<string, Count>()
  readonly #windowMs: number
  readonly #maxKeys: number
  readonly #sharedCounts: number
  readonly #now: () => number
  readonly #hashKey = randomBytes(32)
  readonly #sweep: NodeJS.Timeout

  constructor({ windowMs, maxKeys = 100_000, sharedCounts = 4096, now = monotonicMs }: MemoryAttemptsOptions) {
    this.#windowMs = windowMs
    this.#maxKeys = maxKeys
    this.#sharedCounts = sharedCounts
    this.#now = now
    this.#sweep = setInterval(() => this.sweep(), SWEEP_MS).unref()
  }

  get size(): number {
    return this.#counts.size
  }

  add(key: string): Attempts {
    const now = this.#now()
    this.sweep()
    const own = this.#counts.get(key)
    if (own !== undefined) return this.#increment(own, now)

    // Also where there is room again: who was counted in it would start anew.
    const sharedKey = this.#sharedKey(key)
    const shared = this.#counts.get(sharedKey)
    if (shared !== undefined) return this.#increment(shared, now)
    return this.#begin(this.#counts.size < this.#maxKeys ? key : sharedKey, now)
  }

  /** Forgets the windows that have ended. Costs nothing where none has. */
  sweep(): void {
    const now = this.#now()
    for (const [key, { endsAt }] of this.#counts) {
      if (endsAt > now) return
      this.#counts.delete(key)
    }
  }

  close(): void {
    clearInterval(this.#sweep)
    this.#counts.clear()
  }

  #begin(key: string, now: number): Attempts {
    this.#counts.set(key, { attempts: 1, endsAt: now + this.#windowMs })
    return { current: 1, ttl: this.#windowMs }
  }

  #increment(count: Count, now: number): Attempts {
    count.attempts += 1
    return { current: count.attempts, ttl: count.endsAt - now }
  }

  /** Cannot be taken for an address. */
  #sharedKey(key: string): string {
    const hash = createHmac('sha256', this.#hashKey).update(key).digest().readUInt32BE(0)
    return `shared ${hash % this.#sharedCounts}`
  }
}

// One household or one office has a whole /64: each of its addresses would have attempts of its own.
const IPV6_PREFIX = 64

/**
 * Second: limits login attempts per address and window, all of them in one count. The plugin's own hook would run
 * after those of the chain and count per route, so it is asked here, in its place.
 */
export const rateLimit = async (
  app: FastifyInstance,
  config: GatewayConfig['loginLimit'],
  log: Logger
): Promise<LoginLimit> => {
  const local = new MemoryAttempts({ windowMs: config.windowMs })
  app.addHook('onClose', async () => local.close())
  if (!config.enforced) return local

  const counts =
    config.redisUrl === null ? local : await sharedCounts(app, config.redisUrl, config.windowMs, local, log)
  await app.register(rateLimitPlugin, { global: false, store: storeOn(counts) })
  const check = app.createRateLimit({
    max: config.max,
    timeWindow: config.windowMs,
    keyGenerator: (request) => normalizeIP(request.clientAddress, IPV6_PREFIX)
  })

  app.addHook('onRequest', (request, reply, done) => {
    if (!isLoginAttempt(request.method, request.path)) done()
    else limit(request, reply).then(() => done(), done)
  })

  const limit = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const result = await check(request)
    if (result.isAllowed) return
    reply.headers({
      'x-ratelimit-limit': String(result.max),
      'x-ratelimit-remaining': String(result.remaining),
      'x-ratelimit-reset': String(result.ttlInSeconds)
    })
    if (result.isExceeded)
      throw new GatewayError('RATE_LIMITED', { headers: { 'retry-after': String(result.ttlInSeconds) } })
  }

  return local
}

export interface LoginLimit {
  /** How many addresses are counted at the moment. */
  readonly size: number
}

interface Counts {
  add(key: string): Attempts | Promise<Attempts>
}

const sharedCounts = async (
  app: FastifyInstance,
  url: string,
  windowMs: number,
  local: MemoryAttempts,
  log: Logger
): Promise<Counts> => {
  const { RedisAttempts } = await import('./login-limit-redis.js')
  const shared = new RedisAttempts({ url, windowMs, local, log })
  app.addHook('onClose', async () => shared.close())
  await shared.ready()
  return shared
}

/** The plugin makes its store itself, with `new`; this one only leads to our counts. */
const storeOn = (counts: Counts): FastifyRateLimitStoreCtor =>
  class {
    incr(key: string, callback: (error: Error | null, result?: { current: number; ttl: number }) => void): void {
      Promise.resolve(counts.add(key)).then((attempts) => callback(null, { ...attempts }), callback)
    }

    child(): this {
      return this
    }
  }

/** How often a key was seen in its window, this time included, and when the window ends. */
export interface Attempts {
  readonly current: number
  /** Milliseconds until the count starts anew. */
  readonly ttl: number
}
