import cluster from 'node:cluster'
import { readFileSync } from 'node:fs'
import type { Logger } from 'pino'
import { type Environment, SettingsFault } from '../shared/env.js'
import { onHangup } from '../shared/hangup.js'
import { createLogger } from '../shared/logger.js'
import { monotonicMs } from '../shared/monotonic.js'
import { closeOnSignal } from '../shared/shutdown.js'
import { type UnknownSetting, unknownSettingLine, unknownSettings } from '../shared/unknown-settings.js'
import { buildRelay, newEpoch } from './app.js'
import { type RelayConfig, relayConfig } from './config/config.js'
import { logReload, reloadConfigFile } from './config/reload.js'
import { relaySettings } from './config/settings.js'
import { listen } from './transport/server.js'
import { PRIMARY_TIMES, type PrimaryTimes, runPrimary } from './workers/primary.js'
import { runWorker } from './workers/worker.js'

const VERSION = 'gatehouse-relay 0.1.0'
/** How long a client may take to answer the close, and some more. */
const GOODBYE_MS = 6000
/** A worker that is leaving is waited for longer than it waits itself. */
const WORKER_MS = 3000

/** Keeps what it has read: workers go by the very same text. */
class ConfigFile {
  text: string | null = null
  readonly read = (path: string): string => {
    this.text = readFileSync(path, 'utf8')
    return this.text
  }
}

const startAlone = async (environment: Environment, initial: RelayConfig, log: Logger): Promise<void> => {
  let config = initial
  const { server, configure, close, closeConnections: cutOff } = await buildRelay(config, { log, version: VERSION })
  closeOnSignal({ close, closeConnections: cutOff, abandon: cutOff }, log, () => config.shutdownMs + GOODBYE_MS)
  const reloadConfig = (): void => {
    const reload = reloadConfigFile(config, environment, new ConfigFile().read)
    if (!reload.ok) {
      log.error({ faults: reload.faults }, 'the new config is refused, the old one stays')
      return
    }
    config = reload.config
    configure(config)
    logReload(log, reload)
  }

  const { address, port } = await listen(server, config.listen)
  announce(log, address, port)
  onHangup(reloadConfig)
}

const startWorkers = async (
  environment: Environment,
  config: RelayConfig,
  file: string | null,
  log: Logger,
  times: PrimaryTimes
): Promise<void> => {
  const { host, port } = await runPrimary({
    config,
    file,
    log,
    times,
    graceMs: ({ shutdownMs }) => shutdownMs + GOODBYE_MS + WORKER_MS,
    nowMs: Date.now,
    monotonicMs,
    newEpoch,
    reload: (current) => {
      const next = new ConfigFile()
      return { outcome: reloadConfigFile(current, environment, next.read), file: next.text }
    }
  })
  announce(log, host, port)
}

const announce = (log: Logger, address: string, port: number): void =>
  log.info(`listening at http://${address.includes(':') ? `[${address}]` : address}:${port}`)

/** A person reads this: one line per fault, no stack trace. */
const giveUp = (lines: readonly string[]): never => {
  process.stderr.write(lines.map((line) => `relay: ${line}\n`).join(''))
  process.exit(1)
}

const startOwner = async (
  environment: Environment,
  unknown: readonly UnknownSetting[],
  times: PrimaryTimes
): Promise<void> => {
  const file = new ConfigFile()
  const config = relayConfig(environment, file.read)
  const log = createLogger({ name: 'relay', level: config.logLevel })
  for (const setting of unknown) log.warn(setting, 'unknown setting')
  if (config.workers > 1) await startWorkers(environment, config, file.text, log, times)
  else await startAlone(environment, config, log)
}

/** The process: one relay, the owner of several workers, or one of these. */
export const start = async (environment: Environment, times = PRIMARY_TIMES): Promise<void> => {
  const unknown = unknownSettings(relaySettings, environment)
  try {
    if (cluster.isWorker) await runWorker({ environment, version: VERSION, goodbyeMs: GOODBYE_MS })
    else await startOwner(environment, unknown, times)
  } catch (error) {
    // A setting that is missing may be there under another name.
    if (error instanceof SettingsFault) giveUp([...error.faults, ...unknown.map(unknownSettingLine)])
    giveUp([`cannot start: ${error instanceof Error ? error.message : String(error)}`])
  }
}
