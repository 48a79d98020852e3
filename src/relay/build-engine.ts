import { randomBytes } from 'node:crypto'
import type { EngineConfig, EngineKind } from './config/engine-kinds.js'
import type { Clocks } from './core/clocks.js'
import type { Engine, EngineDependencies } from './core/engine.js'
import { memoryEngine } from './engine/memory.js'

/** Names a new stream of a channel. */
export const newEpoch = (): string => randomBytes(4).toString('hex')

type Build<Kind extends EngineKind> = (
  config: EngineConfig<Kind>,
  dependencies: EngineDependencies & Clocks
) => Promise<Engine>

const BUILDERS: { readonly [Kind in EngineKind]: Build<Kind> } = {
  memory: async (_config, { nowMs, monotonicMs }) => memoryEngine({ nowMs, monotonicMs, newEpoch }),
  redis: async (config, dependencies) => {
    // ioredis is loaded only if it is used: it costs memory, and it derives a class from `String`, after which V8 looks up
    // every method of a string at run time.
    const { buildRedisEngine } = await import('./engine/redis/build.js')
    return buildRedisEngine(config, dependencies)
  }
}

/** The engine that the configuration selects. */
export const buildEngine = <Kind extends EngineKind>(
  config: EngineConfig<Kind>,
  dependencies: EngineDependencies & Clocks
): Promise<Engine> => BUILDERS[config.kind](config, dependencies)
