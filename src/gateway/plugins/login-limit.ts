import rateLimit, { type FastifyRateLimitStoreCtor } from '@fastify/rate-limit'
import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Logger } from 'pino'
import { isLoginAttempt } from '../access.js'
import { GatewayError } from '../errors.js'
import { addressGroup } from '../http/client-request.js'
import { foreignPageTest, type OriginRules } from '../http/request-origin.js'
import type { RequestLimits } from '../limits/request-limits.js'
import type { LoginCounter, MemoryLoginCounter } from '../login-limit/login-counter.js'
import type { RedisConfig } from '../redis-connection.js'

export interface LoginLimitOptions {
  /** False outside production. */
  readonly enforced: boolean
  /** Attempts per address and window. */
  readonly max: number
  readonly windowMs: number
  readonly csrf: OriginRules
  /** The counts of this instance. */
  readonly counter: MemoryLoginCounter
  /** Null if the counts are not shared. */
  readonly redis: RedisConfig | null
  readonly log: Logger
  /** Null if no further limits are configured. */
  readonly requestLimits: Pick<RequestLimits, 'addAddressHook'> | null
}

/**
 * Limits login attempts per client address. The hook of @fastify/rate-limit would run after the other
 * steps and count per route, so this hook calls its check itself.
 */
export const loginLimit = fp<LoginLimitOptions>(
  async (app, options) => {
    const { enforced, max, windowMs, csrf, counter } = options
    options.requestLimits?.addAddressHook(app)
    app.addHook('onClose', async () => counter.close())
    if (!enforced) return

    const shared = await openSharedCounter(options)
    if (shared !== null) app.addHook('onClose', async () => shared.close())
    await app.register(rateLimit, { global: false, store: storeFor(shared ?? counter) })
    const check = app.createRateLimit({
      max,
      timeWindow: windowMs,
      keyGenerator: (request) => addressGroup(request.clientAddress)
    })

    const isFromForeignPage = foreignPageTest(csrf)

    app.addHook('onRequest', (request, reply, done) => {
      // The next step rejects requests of foreign pages, which must not use up the attempts of their visitors.
      if (!isLoginAttempt(request.method, request.path) || isFromForeignPage(request)) done()
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
  },
  { name: 'login-limit', fastify: '5.x', dependencies: ['canonical-path'] }
)

/** The counter that all instances share, or null without Redis. ioredis is loaded only if it is used. */
const openSharedCounter = async ({ redis, windowMs, counter, log }: LoginLimitOptions) => {
  if (redis === null) return null
  const { RedisLoginCounter } = await import('../login-limit/login-counter-redis.js')
  const shared = new RedisLoginCounter({ redis, windowMs, local: counter, log })
  await shared.ready()
  return shared
}

/** @fastify/rate-limit constructs its store itself, so the class closes over the counter. */
const storeFor = (counter: LoginCounter): FastifyRateLimitStoreCtor =>
  class {
    incr(key: string, callback: (error: Error | null, result?: { current: number; ttl: number }) => void): void {
      Promise.resolve(counter.increment(key)).then((count) => callback(null, { ...count }), callback)
    }

    child(): this {
      return this
    }
  }
