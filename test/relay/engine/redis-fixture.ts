import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import type { ChannelStates, Engine, EngineMetrics, Maps } from '../../../src/relay/core/engine.js'
import { buildRedisEngine } from '../../../src/relay/engine/redis/build.js'
import { CONTROL, KEY_SUFFIX } from '../../../src/relay/engine/redis/keys.js'
import { NODE_TIMINGS, type NodeTimings } from '../../../src/relay/engine/redis/nodes.js'
import type { Teardown } from '../../helper/child.js'
import type { EngineUnderTest } from './contract.js'

/** Records the metrics and log lines of an engine. */
export class EngineRecord implements EngineMetrics {
  lost = 0
  errorReplies = 0
  malformed = 0
  countedLocally = 0
  unexpectedErrors = 0
  readonly lines: string[] = []

  engineLost(): void {
    this.lost++
  }

  engineError(): void {
    this.errorReplies++
  }

  engineMalformedMessage(): void {
    this.malformed++
  }

  userRateCountedLocally(): void {
    this.countedLocally++
  }

  unexpectedError(): void {
    this.unexpectedErrors++
  }

  readonly log = {
    info: (facts: object, message: string): void => this.#record(facts, message),
    warn: (facts: object, message: string): void => this.#record(facts, message),
    error: (facts: object, message: string): void => this.#record(facts, message)
  }

  #record(facts: object, message: string): void {
    this.lines.push(`${message} ${JSON.stringify(facts)}`)
  }
}

export interface RedisEngineUnderTest extends EngineUnderTest {
  readonly channelStates: ChannelStates
  readonly maps: Maps
  readonly engine: Engine
  readonly record: EngineRecord
  readonly prefix: string
  close(): void
}

export interface RedisEngineOptions {
  readonly prefix?: string
  readonly presenceTtlMs?: number
  readonly nodeTimings?: NodeTimings
  readonly startTimeoutMs?: number
  readonly slotTimeoutMs?: number
}

/** An engine that has not been started. Engines with different prefixes share nothing. */
export const redisEngine = (
  t: Teardown,
  url: string,
  {
    prefix = `test-${randomUUID()}`,
    presenceTtlMs = 60_000,
    nodeTimings = NODE_TIMINGS,
    startTimeoutMs = 10_000,
    slotTimeoutMs = 2_000
  }: RedisEngineOptions = {}
): RedisEngineUnderTest => {
  const record = new EngineRecord()
  const engine = buildRedisEngine(
    { url, prefix, presenceTtlMs, nodeTimings, startTimeoutMs, slotTimeoutMs },
    { nowMs: Date.now, log: record.log, metrics: record }
  )
  const close = (): void => {
    void engine.cluster.close()
    void engine.close()
  }
  t.teardown(close)
  const { broker, history, maps, presence, userConnections, userRates, channelStates } = engine
  return {
    engine,
    broker,
    history,
    maps,
    presence,
    userConnections,
    userRates,
    channelStates,
    record,
    prefix,
    close,
    advance: (ms) => advanceTime(url, prefix, ms)
  }
}

/** Entries cannot be changed, so the stream is written again. */
const makeOlder = async (redis: Redis, key: string, ms: number): Promise<void> => {
  const entries = await redis.xrange(key, '-', '+')
  await redis.del(key)
  for (const [id, [, body = '', , time = '0']] of entries)
    await redis.xadd(key, id, 'd', body, 't', String(Number(time) - ms))
}

/** Makes the deadlines of a map, or the checks of an index of maps, earlier. */
const makeEarlier = async (redis: Redis, key: string, ms: number): Promise<void> => {
  for (const member of await redis.zrange(key, '0', '-1')) await redis.zincrby(key, -ms, member)
}

/** Shortens the TTL of all keys, and makes what is stored older, instead of moving the clock of Redis. */
export const advanceTime = async (url: string, prefix: string, ms: number): Promise<void> => {
  for (const address of url.split(',')) {
    const redis = new Redis(address)
    for (const key of await redis.keys(`${prefix}*`)) {
      // Every relay renews the ledger.
      if (key.endsWith(CONTROL.ledger)) continue
      const left = await redis.pttl(key)
      if (key.endsWith(KEY_SUFFIX.deadlines) || key.endsWith(`}${CONTROL.mapIndex}`)) await makeEarlier(redis, key, ms)
      if (key.endsWith(KEY_SUFFIX.position) && (await redis.hexists(key, 'n')) === 1) await redis.hincrby(key, 'n', -ms)
      if (left > ms && key.endsWith(KEY_SUFFIX.stream)) await makeOlder(redis, key, ms)
      if (key.includes('}rate:')) await redis.decrby(key, ms * 1000)
      if (left >= 0) await (left <= ms ? redis.del(key) : redis.pexpire(key, left - ms))
    }
    redis.disconnect()
  }
}
