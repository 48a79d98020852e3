import { isDeepStrictEqual } from 'node:util'
import type { Logger } from 'pino'
import { type Environment, SettingsError } from '../../shared/env.js'
import type { ChannelOptions } from '../core/options.js'
import { DEFAULT_MESSAGE_BYTES } from './client-options.js'
import { type RelayConfig, relayConfig } from './config.js'
import { restartOptions } from './engine-kinds.js'
import type { ReadFile } from './file.js'
import type { ProxyOptions } from './proxy-options.js'
import type { ProxyConfig } from './proxy-selection.js'

export interface Reloaded {
  readonly ok: true
  readonly config: RelayConfig
  /** Changed options that take effect after a restart. The relay continues with the old values. */
  readonly needsRestart: readonly string[]
  /** Changed options that apply to new connections and subscriptions only. */
  readonly needsReconnect: readonly string[]
}

export type Reload = Reloaded | { readonly ok: false; readonly errors: readonly string[] }

type OptionReaders = Readonly<Record<string, (config: RelayConfig) => unknown>>

// An option in none of these tables takes effect at once, also for existing channels and connections. A test changes
// every option of the file to verify this.

/** Sockets, the engine and processes are set up at start. */
const NEEDS_RESTART: OptionReaders = {
  'http_server.address': ({ listen }) => listen.host,
  'http_server.port': ({ listen }) => listen.port,
  'http_server.internal_address': ({ internalListen }) => internalListen?.host,
  'http_server.internal_port': ({ internalListen }) => internalListen?.port,
  'engine.type': ({ engine }) => engine.kind,
  'log.file': ({ logFile }) => logFile,
  'node.name': ({ nodeName }) => nodeName,
  RELAY_WORKERS: ({ workers }) => workers
}

/** Fixed when a client connects. */
const NEEDS_RECONNECT: OptionReaders = {
  // The client received the interval and closes a connection without a ping in that time.
  'client.ping_interval': ({ client }) => client.pingIntervalMs,
  // The client was told whether it refreshes the connection itself.
  'client.proxy.refresh.enabled': ({ client }) => client.refreshProxy,
  'client.subscribe_to_user_personal_channel.enabled': ({ client }) => client.userSubscribeToPersonal,
  'client.subscribe_to_user_personal_channel.personal_channel_namespace': ({ client }) =>
    client.personalChannelNamespace,
  'websocket.message_size_limit': ({ client }) => client.messageSizeLimit,
  // If compression is off, the other options have their defaults.
  'websocket.compression': ({ client }) => client.compression !== null,
  'websocket.compression_min_size': ({ client }) => client.compression?.minBytes ?? 0,
  'websocket.compression_level': ({ client }) => client.compression?.level ?? 1,
  'websocket.decompressed_message_size_limit': ({ client }) =>
    client.compression?.maxDecompressedBytes ?? DEFAULT_MESSAGE_BYTES,
  'uni_websocket.message_size_limit': ({ unidirectional }) => unidirectional.webSocket.maxMessageBytes,
  'uni_websocket.compression': ({ unidirectional }) => unidirectional.webSocket.compression !== null,
  'uni_websocket.compression_min_size': ({ unidirectional }) => unidirectional.webSocket.compression?.minBytes ?? 0,
  'uni_websocket.compression_level': ({ unidirectional }) => unidirectional.webSocket.compression?.level ?? 1,
  'uni_websocket.decompressed_message_size_limit': ({ unidirectional }) =>
    unidirectional.webSocket.compression?.maxDecompressedBytes ?? DEFAULT_MESSAGE_BYTES,
  'uni_websocket.disable_disconnect_push': ({ unidirectional }) => unidirectional.webSocket.hasDisconnectPush
}

/** Fixed when a client subscribes; in every namespace. */
const NEEDS_RESUBSCRIBE: Readonly<Record<string, (options: ChannelOptions) => unknown>> = {
  presence: ({ presence }) => presence,
  join_leave: ({ joinLeave }) => joinLeave,
  force_push_join_leave: ({ forcePushJoinLeave }) => forcePushJoinLeave,
  force_recovery: ({ forceRecovery }) => forceRecovery,
  allow_recovery: ({ allowRecovery }) => allowRecovery,
  force_positioning: ({ forcePositioning }) => forcePositioning,
  allow_positioning: ({ allowPositioning }) => allowPositioning,
  allowed_delta_types: ({ allowedDeltaTypes }) => allowedDeltaTypes,
  // The client was told whether it refreshes the subscription itself.
  sub_refresh_proxy_enabled: ({ subRefreshProxy }) => subRefreshProxy !== null
}

/** Reads the file again. An invalid file changes nothing. */
export const reloadConfigFile = (current: RelayConfig, environment: Environment, readFile: ReadFile): Reload => {
  let next: RelayConfig
  try {
    next = relayConfig(environment, readFile)
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    return { ok: false, errors: error.errors }
  }
  const { listen, internalListen, engine, workers, nodeName, logFile } = current
  return {
    ok: true,
    config: Object.freeze({
      ...next,
      listen,
      internalListen,
      engine,
      workers,
      nodeName,
      logFile
    }),
    needsRestart: [
      ...changed(NEEDS_RESTART, current, next),
      // The options of another kind of engine are not a change of their own.
      ...(engine.kind === next.engine.kind ? changedValues(restartOptions(engine), restartOptions(next.engine)) : [])
    ],
    needsReconnect: [
      ...changed(NEEDS_RECONNECT, current, next),
      ...changedInChannels(current, next),
      ...changedHeaders(current, next)
    ]
  }
}

/**
 * Logs the outcome and applies the new log level: before logging if the old level would hide the line, else after it.
 * `unreached` lists the workers that have not applied the configuration.
 */
export const logReload = (log: Logger, reloaded: Reloaded, unreached: readonly number[] = []): void => {
  const { config, needsRestart, needsReconnect } = reloaded
  if (!log.isLevelEnabled('info')) log.level = config.logLevel
  if (unreached.length === 0) log.info({ needsRestart, needsReconnect }, 'config reloaded')
  else log.error({ needsRestart, needsReconnect, workers: unreached }, 'config not applied in all workers')
  log.level = config.logLevel
}

const changedValues = (current: Readonly<Record<string, unknown>>, next: Readonly<Record<string, unknown>>): string[] =>
  Object.keys(next).filter((option) => !isDeepStrictEqual(current[option], next[option]))

const changed = (readers: OptionReaders, current: RelayConfig, next: RelayConfig): string[] =>
  Object.entries(readers)
    .filter(([, read]) => !isDeepStrictEqual(read(current), read(next)))
    .map(([option]) => option)

/** Of namespaces in both configurations. Subscriptions of a removed namespace keep its options until they end. */
const changedInChannels = ({ channels: current }: RelayConfig, { channels: next }: RelayConfig): string[] => [
  ...changedOptions('channel.without_namespace', current.withoutNamespace, next.withoutNamespace),
  ...[...next.namespaces].flatMap(([name, options]) => {
    const before = current.namespaces.get(name)
    return before === undefined ? [] : changedOptions(`channel.namespaces[${name}]`, before, options)
  })
]

const changedOptions = (path: string, before: ChannelOptions, after: ChannelOptions): string[] =>
  Object.entries(NEEDS_RESUBSCRIBE)
    .filter(([, read]) => !isDeepStrictEqual(read(before), read(after)))
    .map(([option]) => `${path}.${option}`)

/** A connection keeps the headers that were listed when it was opened. */
const changedHeaders = ({ proxies: current }: RelayConfig, { proxies: next }: RelayConfig): string[] => {
  const before = proxiesById(current)
  return [...proxiesById(next)].flatMap(([id, { httpHeaders, emulatedHeaders }]) => {
    const old = before.get(id)
    if (old === undefined) return []
    return [
      ...(isDeepStrictEqual(old.httpHeaders, httpHeaders) ? [] : [`${id}.http_headers`]),
      ...(isDeepStrictEqual(old.emulatedHeaders, emulatedHeaders) ? [] : [`${id}.emulated_headers`])
    ]
  })
}

const proxiesById = ({ events }: ProxyConfig): ReadonlyMap<string, ProxyOptions> =>
  new Map(Object.values(events).flatMap((byName) => [...byName.values()].map((options) => [options.id, options])))

/** Caches a value derived from the configuration until the configuration is reloaded. */
export const cachedPerConfig = <T>(config: () => RelayConfig, derive: (config: RelayConfig) => T): (() => T) => {
  let source = config()
  let value = derive(source)
  return () => {
    const current = config()
    if (current !== source) {
      source = current
      value = derive(current)
    }
    return value
  }
}
