import { isDeepStrictEqual } from 'node:util'
import { type Environment, SettingsFault } from '../shared/env.js'
import { type RelayConfig, relayConfig } from './config.js'
import type { ReadFile } from './config-file.js'

export type Reload =
  | {
      readonly ok: true
      readonly config: RelayConfig
      /** What the file wants otherwise, and a running relay cannot change. */
      readonly needsRestart: readonly string[]
    }
  | { readonly ok: false; readonly faults: readonly string[] }

/** Sockets, engine and processes are there already. */
const FIXED = [
  'listen',
  'engine',
  'redisUrl',
  'redisPrefix',
  'presenceTtlMs',
  'workers'
] as const satisfies readonly (keyof RelayConfig)[]

/** Reads the file again. A bad one is told and changes nothing: the caller goes on with the config that it has. */
export const reloadConfigFile = (current: RelayConfig, environment: Environment, readFile: ReadFile): Reload => {
  let next: RelayConfig
  try {
    next = relayConfig(environment, readFile)
  } catch (error) {
    if (!(error instanceof SettingsFault)) throw error
    return { ok: false, faults: error.faults }
  }
  const { listen, engine, redisUrl, redisPrefix, presenceTtlMs, workers } = current
  return {
    ok: true,
    config: Object.freeze({ ...next, listen, engine, redisUrl, redisPrefix, presenceTtlMs, workers }),
    needsRestart: FIXED.filter((name) => !isDeepStrictEqual(current[name], next[name]))
  }
}
