import { randomBytes } from 'node:crypto'
import type { RelayConfig } from './config.js'
import type { Clocks } from './core/clocks.js'
import type { Engine, EngineParts } from './engine/engine.js'
import { buildRedisEngine } from './engine/redis/build.js'
import { withinProcess } from './engine/within-process.js'

/** The name of a stream that is made anew. */
export const newEpoch = (): string => randomBytes(4).toString('hex')

/** The engine that the operator chose. */
export const buildEngine = (
  { engine, redisUrl, redisPrefix, presenceTtlMs }: RelayConfig,
  parts: EngineParts & Clocks
): Engine =>
  engine === 'redis' && redisUrl !== null
    ? buildRedisEngine({ url: redisUrl, prefix: redisPrefix, presenceTtlMs }, parts)
    : withinProcess({ nowMs: parts.nowMs, monotonicMs: parts.monotonicMs, newEpoch })
