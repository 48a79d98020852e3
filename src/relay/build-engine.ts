import { randomBytes } from 'node:crypto'
import type { EngineConfig } from './config/engine-options.js'
import type { Clocks } from './core/clocks.js'
import type { Engine, EngineDependencies } from './core/engine.js'
import { memoryEngine } from './engine/memory.js'

/** Names a new stream of a channel. */
export const newEpoch = (): string => randomBytes(4).toString('hex')

/** The engine that the configuration selects. */
export const buildEngine = async (config: EngineConfig, dependencies: EngineDependencies & Clocks): Promise<Engine> => {
  const { nowMs, monotonicMs } = dependencies
  if (config.kind === 'memory') return memoryEngine({ nowMs, monotonicMs, newEpoch })
  // ioredis is loaded only if it is used: it costs memory, and it derives a class from `String`, after which V8 looks up every
  // method of a string at run time.
  const { buildRedisEngine } = await import('./engine/redis/build.js')
  return buildRedisEngine(config, dependencies)
}
