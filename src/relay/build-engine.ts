import { randomBytes } from 'node:crypto'
import type { RelayConfig } from './config/config.js'
import type { Clocks } from './core/clocks.js'
import type { Engine, EngineDependencies } from './core/engine.js'
import { memoryEngine } from './engine/memory.js'

type BuildEngine = (config: RelayConfig, dependencies: EngineDependencies & Clocks) => Engine | Promise<Engine>

/** Names a new stream of a channel. */
export const newEpoch = (): string => randomBytes(4).toString('hex')

const ENGINES: Readonly<Record<RelayConfig['engine'], BuildEngine>> = {
  memory: (_, { nowMs, monotonicMs }) => memoryEngine({ nowMs, monotonicMs, newEpoch }),
  /**
   * ioredis is loaded only if it is used: it costs memory, and it derives a class from `String`, after which V8 looks up every
   * method of a string at run time.
   */
  redis: async ({ redisUrl, redisPrefix, presenceTtlMs }, dependencies) => {
    const { buildRedisEngine } = await import('./engine/redis/build.js')
    // The configuration is rejected without an address.
    return buildRedisEngine({ url: redisUrl ?? '', prefix: redisPrefix, presenceTtlMs }, dependencies)
  }
}

/** The engine that the configuration selects. */
export const buildEngine: BuildEngine = (config, dependencies) => ENGINES[config.engine](config, dependencies)
