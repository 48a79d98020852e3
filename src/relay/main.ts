import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { SettingsFault } from '../shared/env.js'
import { createLogger } from '../shared/logger.js'
import { closeOnSignal } from '../shared/shutdown.js'
import { buildRelay } from './app.js'
import { type RelayConfig, relayConfig } from './config.js'
import { reloadConfigFile } from './config-reload.js'

const VERSION = 'gatehouse-relay 0.1.0'
/** What a client that was sent away may take to answer, and some more. */
const GOODBYE_MS = 6000
const readFile = (path: string): string => readFileSync(path, 'utf8')

/** What the settings can say and this program cannot do. */
const missing = ({ engine, workers }: RelayConfig): readonly string[] => [
  ...(engine === 'memory' ? [] : ['RELAY_ENGINE must be memory: there is no other engine in this version']),
  ...(workers === 1 ? [] : ['RELAY_WORKERS must be 1 with RELAY_ENGINE=memory: processes would not hear of each other'])
]

const start = async (initial: RelayConfig): Promise<void> => {
  let config = initial
  const log = createLogger({ name: 'relay', level: config.logLevel })
  const { server, configure, close, cutOff } = await buildRelay(config, { log, version: VERSION })
  closeOnSignal({ close, cutOff }, log, config.shutdownMs + GOODBYE_MS)
  process.on('SIGHUP', () => {
    const reload = reloadConfigFile(config, process.env, readFile)
    if (!reload.ok) {
      log.error({ faults: reload.faults }, 'the new config is refused, the old one stays')
      return
    }
    config = reload.config
    configure(config)
    log.info({ needsRestart: reload.needsRestart }, 'config reloaded')
  })

  server.listen(config.listen.port, config.listen.host)
  await once(server, 'listening')
  const { address, port } = server.address() as AddressInfo
  log.info(`listening at http://${address.includes(':') ? `[${address}]` : address}:${port}`)
}

/** A person reads this: one line per fault, no stack trace. */
const giveUp = (lines: readonly string[]): never => {
  process.stderr.write(lines.map((line) => `relay: ${line}\n`).join(''))
  process.exit(1)
}

try {
  const config = relayConfig(process.env, readFile)
  const faults = missing(config)
  if (faults.length > 0) throw new SettingsFault(faults)
  await start(config)
} catch (error) {
  if (error instanceof SettingsFault) giveUp(error.faults)
  giveUp([`cannot start: ${error instanceof Error ? error.message : String(error)}`])
}
