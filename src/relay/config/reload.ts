import { isDeepStrictEqual } from 'node:util'
import type { Logger } from 'pino'
import { type Environment, SettingsFault } from '../../shared/env.js'
import type { ChannelOptions } from '../core/options.js'
import { type RelayConfig, relayConfig } from './config.js'
import type { ReadFile } from './file.js'

export interface Reloaded {
  readonly ok: true
  readonly config: RelayConfig
  /** Changed options that a running relay cannot apply. It goes on with the old values. */
  readonly needsRestart: readonly string[]
  /** Changed options that hold for new connections and subscriptions, and not for those that are there. */
  readonly needsReconnect: readonly string[]
}

export type Reload = Reloaded | { readonly ok: false; readonly faults: readonly string[] }

type Values = Readonly<Record<string, (config: RelayConfig) => unknown>>

// An option that is in none of these tables takes effect at once, for existing channels and connections too. A test
// changes every option of the file and holds it to that.

/** Sockets, the engine and processes are set up at start. */
const NEEDS_RESTART: Values = {
  'http_server.address': ({ listen }) => listen.host,
  'http_server.port': ({ listen }) => listen.port,
  'engine.type': ({ engine }) => engine,
  'engine.redis.address': ({ redisUrl }) => redisUrl,
  'engine.redis.prefix': ({ redisPrefix }) => redisPrefix,
  'engine.redis.presence_ttl': ({ presenceTtlMs }) => presenceTtlMs,
  RELAY_WORKERS: ({ workers }) => workers
}

/** Agreed with a client when it connects. */
const NEEDS_RECONNECT: Values = {
  // The client was told the interval, and gives up a connection on which no ping comes in time.
  'client.ping_interval': ({ client }) => client.pingIntervalMs,
  'client.subscribe_to_user_personal_channel.enabled': ({ client }) => client.userSubscribeToPersonal,
  'client.subscribe_to_user_personal_channel.personal_channel_namespace': ({ client }) =>
    client.personalChannelNamespace,
  'websocket.message_size_limit': ({ client }) => client.messageSizeLimit
}

/** Agreed with a client when it subscribes, in every namespace. */
const NEEDS_RESUBSCRIBE: Readonly<Partial<Record<keyof ChannelOptions, string>>> = {
  presence: 'presence',
  joinLeave: 'join_leave',
  forcePushJoinLeave: 'force_push_join_leave',
  forceRecovery: 'force_recovery',
  allowRecovery: 'allow_recovery',
  forcePositioning: 'force_positioning',
  allowPositioning: 'allow_positioning',
  allowedDeltaTypes: 'allowed_delta_types'
}

/** Reads the file again. A bad one changes nothing: the caller goes on with the config that it has. */
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
    needsRestart: changed(NEEDS_RESTART, current, next),
    needsReconnect: [...changed(NEEDS_RECONNECT, current, next), ...changedInChannels(current, next)]
  }
}

/**
 * Logs the outcome and applies the new log level: first where the old level would hide the line, else afterwards.
 * `unreached` are the numbers of workers that have not applied the config.
 */
export const logReload = (log: Logger, reloaded: Reloaded, unreached: readonly number[] = []): void => {
  const { config, needsRestart, needsReconnect } = reloaded
  if (!log.isLevelEnabled('info')) log.level = config.logLevel
  if (unreached.length === 0) log.info({ needsRestart, needsReconnect }, 'config reloaded')
  else log.error({ needsRestart, needsReconnect, workers: unreached }, 'config not applied in all workers')
  log.level = config.logLevel
}

const changed = (values: Values, current: RelayConfig, next: RelayConfig): string[] =>
  Object.entries(values)
    .filter(([, of]) => !isDeepStrictEqual(of(current), of(next)))
    .map(([option]) => option)

/** A namespace that is new or gone has no subscriptions that could differ from it. */
const changedInChannels = ({ channels: current }: RelayConfig, { channels: next }: RelayConfig): string[] => [
  ...changedOptions('channel.without_namespace', current.withoutNamespace, next.withoutNamespace),
  ...[...next.namespaces].flatMap(([name, options]) => {
    const before = current.namespaces.get(name)
    return before === undefined ? [] : changedOptions(`channel.namespaces[${name}]`, before, options)
  })
]

const changedOptions = (place: string, before: ChannelOptions, after: ChannelOptions): string[] =>
  Object.entries(NEEDS_RESUBSCRIBE)
    .filter(([name]) => !isDeepStrictEqual(before[name as keyof ChannelOptions], after[name as keyof ChannelOptions]))
    .map(([, option]) => `${place}.${option}`)

/** What follows from the config, made anew when the operator has reloaded it and not for every request. */
export const cachedPerConfig = <T>(config: () => RelayConfig, make: (config: RelayConfig) => T): (() => T) => {
  let of = config()
  let made = make(of)
  return () => {
    const now = config()
    if (now !== of) {
      of = now
      made = make(now)
    }
    return made
  }
}
