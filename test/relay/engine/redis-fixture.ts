import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import type { Engine, EngineMetrics } from '../../../src/relay/engine/engine.js'
import { buildRedisEngine } from '../../../src/relay/engine/redis/build.js'
import { CLUSTER_TIMINGS, type ClusterTimings } from '../../../src/relay/engine/redis/cluster.js'
import type { Teardown } from '../../helper/child.js'
import type { EngineUnderTest } from './contract.js'

/** Counts what an engine says of itself, and keeps its log. */
export class EngineRecord implements EngineMetrics {
  lost = 0
  refused = 0
  strange = 0
  readonly lines: string[] = []

  engineLost(): void {
    this.lost++
  }

  engineError(): void {
    this.refused++
  }

  engineMalformedMessage(): void {
    this.strange++
  }

  readonly log = {
    info: (facts: object, message: string): void => this.#say(facts, message),
    warn: (facts: object, message: string): void => this.#say(facts, message),
    error: (facts: object, message: string): void => this.#say(facts, message)
  }

  #say(facts: object, message: string): void {
    this.lines.push(`${message} ${JSON.stringify(facts)}`)
  }
}

export interface RedisEngineUnderTest extends EngineUnderTest {
  readonly engine: Engine
  readonly record: EngineRecord
  readonly prefix: string
  close(): void
}

export interface RedisEngineOptions {
  readonly prefix?: string
  readonly presenceTtlMs?: number
  readonly fleetTimes?: ClusterTimings
  readonly startWithinMs?: number
}

/** An engine that has not been started. Those with another prefix know nothing of it. */
export const redisEngine = (
  t: Teardown,
  url: string,
  {
    prefix = `test-${randomUUID()}`,
    presenceTtlMs = 60_000,
    fleetTimes = CLUSTER_TIMINGS,
    startWithinMs = 10_000
  }: RedisEngineOptions = {}
): RedisEngineUnderTest => {
  const record = new EngineRecord()
  const engine = buildRedisEngine(
    { url, prefix, presenceTtlMs, clusterTimings: fleetTimes, startWithinMs },
    { nowMs: Date.now, log: record.log, metrics: record }
  )
  const close = (): void => {
    void engine.cluster.close()
    void engine.close()
  }
  t.teardown(close)
  const { broker, history, presence, userConnections } = engine
  return {
    engine,
    broker,
    history,
    presence,
    userConnections,
    record,
    prefix,
    close,
    pass: (ms) => passTime(url, prefix, ms)
  }
}

/** Redis has a clock of its own: what has so long to live has less from now on. */
const passTime = async (url: string, prefix: string, ms: number): Promise<void> => {
  for (const address of url.split(',')) {
    const redis = new Redis(address)
    for (const key of await redis.keys(`${prefix}*`)) {
      const left = await redis.pttl(key)
      if (left >= 0) await (left <= ms ? redis.del(key) : redis.pexpire(key, left - ms))
    }
    redis.disconnect()
  }
}
