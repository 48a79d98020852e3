import rateLimitPlugin, { type FastifyRateLimitStoreCtor, normalizeIP } from '@fastify/rate-limit'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { isLoginAttempt } from '../access.js'
import type { GatewayConfig } from '../config.js'
import { Refusal } from '../errors.js'
import type { Attempts } from '../login-limit/attempts.js'
import { MemoryAttempts } from '../login-limit/memory-attempts.js'

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
      throw new Refusal('RATE_LIMITED', { headers: { 'retry-after': String(result.ttlInSeconds) } })
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
  const { RedisAttempts } = await import('../login-limit/redis-attempts.js')
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
