import { once } from 'node:events'
import { type AddressInfo, Socket } from 'node:net'
import type { Environment } from '../../shared/env.js'
import { createLogger } from '../../shared/logger.js'
import { closeOnSignal } from '../../shared/shutdown.js'
import { buildRelay } from '../app.js'
import { type RelayConfig, relayConfig } from '../config.js'
import { reloadConfigFile } from '../config-reload.js'
import type { Engine } from '../engine/engine.js'
import { done, Link } from './link.js'
import { OwnedEngine } from './owned-engine.js'
import { OwnedPresence } from './owned-presence.js'
import { WorkerFleet } from './worker-fleet.js'
import { LINK_FD } from './worker-processes.js'

export interface WorkerParts {
  readonly environment: Environment
  readonly version: string
  /** Beyond what the farewells take. */
  readonly goodbyeMs: number
}

/** One of several processes that share a port. What all of them share is in another process, at the end of a link. */
export const runWorker = async ({ environment, version, goodbyeMs }: WorkerParts): Promise<void> => {
  // The one that started this process hears of it, and tells what it means.
  process.on('SIGHUP', () => undefined)
  const link = new Link(new Socket({ fd: LINK_FD, readable: true, writable: true }), (error) => {
    throw error
  })
  // Without the owner there is nothing to serve. It has been restarted, or it will be.
  void link.closed.then(() => process.exit(1))
  const { number, file, port } = await beginning(link)
  try {
    const config = relayConfig(environment, () => file)
    await serve(config, { link, number, port, environment, version, goodbyeMs })
  } catch (error) {
    link.tell('failed', (out) => out.text(error instanceof Error ? error.message : String(error)))
    link.end()
  }
}

interface ServeParts extends WorkerParts {
  readonly link: Link
  readonly number: number
  readonly port: number
}

const serve = async (
  initial: RelayConfig,
  { link, number, port, environment, version, goodbyeMs }: ServeParts
): Promise<void> => {
  let config = initial
  const log = createLogger({ name: 'relay', level: config.logLevel, isShared: true }).child({ worker: number })
  const name = `relay worker ${number}`
  // With Redis every worker is a node by itself.
  const shared = config.engine === 'memory' ? { engine: owned(link) } : {}
  const { server, configure, close, cutOff } = await buildRelay(config, { log, version, name, ...shared })
  server.listen(port, config.listen.host)
  await once(server, 'listening')
  const stop = closeOnSignal({ close, cutOff }, log, config.shutdownMs + goodbyeMs)
  link.hears({ stop })
  link.answers({
    configure: (fields) => {
      const file = fields.text()
      const reload = reloadConfigFile(config, environment, () => file)
      if (!reload.ok) throw new Error(reload.faults.join('; '))
      config = reload.config
      configure(config)
      return done
    }
  })
  const { address, port: listening } = server.address() as AddressInfo
  link.tell('listening', (out) => out.text(address).number(listening))
}

const beginning = (link: Link): Promise<{ readonly number: number; readonly file: string; readonly port: number }> =>
  new Promise((resolve) => {
    link.hears({
      begin: (fields) => resolve({ number: fields.number(), file: fields.textOrNull() ?? '', port: fields.number() })
    })
  })

const owned = (link: Link): Engine => {
  const engine = new OwnedEngine(link)
  return {
    broker: engine,
    history: engine,
    presence: new OwnedPresence(link),
    fleet: new WorkerFleet(link),
    isReady: true,
    sweep: () => undefined,
    close: () => undefined
  }
}
