import cluster from 'node:cluster'
import { readFileSync } from 'node:fs'
import type { Logger } from 'pino'
import packageFile from '../../package.json' with { type: 'json' }
import { type Environment, isGiven, SettingsError } from '../shared/env.js'
import { errorCode } from '../shared/error-code.js'
import { messageOf } from '../shared/error-message.js'
import { onHangup } from '../shared/hangup.js'
import { openLogFile, reopenLogFile } from '../shared/log-output.js'
import { createLogger } from '../shared/logger.js'
import { monotonicMs } from '../shared/monotonic.js'
import { openTracer } from '../shared/open-tracer.js'
import { closeOnSignal } from '../shared/shutdown.js'
import type { Tracer } from '../shared/tracing.js'
import { type UnknownSetting, unknownSettingLine, unknownSettings } from '../shared/unknown-settings.js'
import { newEpoch } from './build-engine.js'
import {
  INTERNAL_LISTEN_SETTINGS,
  LISTEN_SETTINGS,
  type ListenAddress,
  type RelayConfig,
  relayConfig
} from './config/config.js'
import { runsInPrimary } from './config/engine-kinds.js'
import { FILE_ERROR_PREFIX } from './config/file.js'
import { logReload, reloadConfigFile } from './config/reload.js'
import { relaySettings } from './config/settings.js'
import type { PrimaryTimings } from './workers/primary.js'

const VERSION = `gatehouse-relay ${packageFile.version}`
/** Time for clients to complete the close handshake, in addition to the configured shutdown time. */
const CLOSE_HANDSHAKE_MS = 6000
/** The primary waits longer for a worker to exit than the worker waits for its clients. */
const WORKER_EXIT_MS = 3000

/**
 * Starts the process in its role: a single relay, the primary of several workers, or one of the workers. Each loads only its
 * own modules, and only after the settings are known to be valid.
 */
export const start = async (environment: Environment, timings?: PrimaryTimings): Promise<void> => {
  const unknown = unknownSettings(relaySettings, environment)
  try {
    if (cluster.isWorker) await startWorker(environment)
    else await startFirst(environment, unknown, timings)
  } catch (error) {
    // A missing setting may be present under a misspelled name.
    if (error instanceof SettingsError) exitWithErrors([...error.errors, ...unknown.map(unknownSettingLine)])
    exitWithErrors([`cannot start: ${messageOf(error)}`])
  }
}

/** The process that the operator started. */
const startFirst = async (
  environment: Environment,
  unknown: readonly UnknownSetting[],
  timings: PrimaryTimings | undefined
): Promise<void> => {
  const file = new ConfigFileReader()
  const config = relayConfig(environment, file.read)
  const log = openLog(config)
  for (const setting of unknown) log.warn(setting, 'unknown setting')
  for (const option of config.ineffectiveOptions) log.warn({ option }, 'option without effect')
  if (!isGiven('NODE_ENV', environment)) log.warn('NODE_ENV not set, use production or development')
  if (config.workers > 1) await startPrimary(environment, config, file.text, log, timings)
  else await startSingle(environment, config, log)
}

const startSingle = async (environment: Environment, initial: RelayConfig, log: Logger): Promise<void> => {
  const { buildRelayApp } = await import('./app.js')
  const { listen } = await import('./transport/server.js')
  let config = initial
  if (config.warmsUp) await warmUp(log)
  const tracer = await openRelayTracer(environment, log)
  const { server, internalServer, configure, announceShutdown, close, closeConnections } = await buildRelayApp(config, {
    log,
    version: VERSION,
    tracer
  })
  closeOnSignal({ announceShutdown, close, closeConnections, abandon: closeConnections }, log, {
    delayMs: config.shutdownDelayMs,
    graceMs: () => closeTimeoutMs(config)
  })
  const reloadConfig = (): void => {
    reopenLog(log)
    const reload = reloadConfigFile(config, environment, new ConfigFileReader().read)
    if (!reload.ok) {
      log.error({ errors: reload.errors }, 'config reload rejected')
      return
    }
    config = reload.config
    configure(config)
    logReload(log, reload)
  }

  if (internalServer !== null && config.internalListen !== null) {
    const { address, port } = await listen(internalServer, config.internalListen, INTERNAL_LISTEN_SETTINGS)
    logInternalAddress(log, { host: address, port })
  }
  const { address, port } = await listen(server, config.listen, LISTEN_SETTINGS)
  logAddress(log, { host: address, port })
  onHangup(reloadConfig)
}

const startPrimary = async (
  environment: Environment,
  config: RelayConfig,
  file: string | null,
  log: Logger,
  timings: PrimaryTimings | undefined
): Promise<void> => {
  const { runPrimary } = await import('./workers/primary.js')
  const { external, internal } = await runPrimary({
    config,
    file,
    log,
    ...(timings && { timings }),
    graceMs: (current) => closeTimeoutMs(current) + WORKER_EXIT_MS,
    nowMs: Date.now,
    monotonicMs,
    newEpoch,
    reload: (current) => {
      reopenLog(log)
      const next = new ConfigFileReader()
      return { outcome: reloadConfigFile(current, environment, next.read), file: next.text }
    }
  })
  if (internal !== null) logInternalAddress(log, internal)
  logAddress(log, external)
}

/** Workers ignore SIGHUP, which also reaches them in a process group: the primary reloads and sends the file. */
const startWorker = async (environment: Environment): Promise<void> => {
  const { PrimaryConnection } = await import('./workers/worker.js')
  const primary = await PrimaryConnection.open()
  try {
    let config = relayConfig(environment, () => primary.configFile)
    const log = openLog(config).child({ worker: primary.workerNumber })
    const { buildRelayApp } = await import('./app.js')
    if (config.warmsUp) await warmUp(log)
    const { server, internalServer, configure, announceShutdown, close, closeConnections } = await buildRelayApp(
      config,
      {
        log,
        version: VERSION,
        tracer: await openRelayTracer(environment, log),
        name: `${config.nodeName ?? 'relay'} worker ${primary.workerNumber}`,
        // A worker with an engine of its own is a node of its own.
        ...(runsInPrimary(config.engine) ? { engine: primary.engine() } : {}),
        admission: primary.admission,
        connectionsClosed: () => primary.connections.closed(),
        metricsOfAll: (own) => primary.shareMetrics(own)
      }
    )
    // Closes the clients with 3001, so that they reconnect at once.
    primary.onLost = closeConnections
    primary.onConfigFile = () => {
      reopenLog(log)
      const reload = reloadConfigFile(config, environment, () => primary.configFile)
      if (!reload.ok) throw new Error(reload.errors.join('; '))
      config = reload.config
      log.level = config.logLevel
      configure(config)
    }
    // The primary may have sent a new file while the relay was built.
    primary.onConfigFile()
    const drainAndClose = (): Promise<void> => {
      primary.connections.drain()
      return close()
    }
    await primary.ready()
    await primary.connections.serve(server, internalServer)
    // The delay is the primary's, which accepts the connections.
    const stop = closeOnSignal({ close: drainAndClose, closeConnections, abandon: closeConnections }, log, {
      graceMs: () => closeTimeoutMs(config)
    })
    primary.onStop({ announced: announceShutdown, stop })
    primary.reportServing()
  } catch (error) {
    primary.reportFailure(error)
  }
}

const warmUp = async (log: Logger): Promise<void> => {
  const { warmUp } = await import('./warm-up.js')
  await warmUp(log, monotonicMs)
}

const openRelayTracer = (environment: Environment, log: Logger): Promise<Tracer | null> =>
  openTracer(environment, { serviceName: 'gatehouse-relay', version: packageFile.version, log })

const openLog = ({ logLevel, logFile }: RelayConfig): Logger => {
  try {
    if (logFile !== null) openLogFile(logFile)
  } catch (error) {
    throw new SettingsError([`${FILE_ERROR_PREFIX} log.file cannot be opened (${errorCode(error)})`])
  }
  return createLogger({ name: 'relay', level: logLevel })
}

const reopenLog = (log: Logger): void => {
  try {
    reopenLogFile()
  } catch (error) {
    log.error({ cause: errorCode(error) }, 'log file not reopened')
  }
}

/** Stores the text that it read: workers must use the same text as the primary. */
class ConfigFileReader {
  text: string | null = null
  readonly read = (path: string): string => {
    this.text = readFileSync(path, 'utf8')
    return this.text
  }
}

const closeTimeoutMs = ({ shutdownMs }: RelayConfig): number => shutdownMs + CLOSE_HANDSHAKE_MS

const logAddress = (log: Logger, address: ListenAddress): void => log.info(`listening at ${urlOf(address)}`)

const logInternalAddress = (log: Logger, address: ListenAddress): void =>
  log.info(`internal routes at ${urlOf(address)}`)

const urlOf = ({ host, port }: ListenAddress): string => `http://${host.includes(':') ? `[${host}]` : host}:${port}`

/** Prints one line per error without a stack trace. */
const exitWithErrors = (lines: readonly string[]): never => {
  process.stderr.write(lines.map((line) => `relay: ${line}\n`).join(''))
  process.exit(1)
}
