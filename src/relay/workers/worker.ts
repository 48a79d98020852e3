import { Socket } from 'node:net'
import type { Environment } from '../../shared/env.js'
import { createLogger } from '../../shared/logger.js'
import { closeOnSignal } from '../../shared/shutdown.js'
import { buildRelay } from '../app.js'
import { relayConfig } from '../config/config.js'
import { reloadConfigFile } from '../config/reload.js'
import type { Engine } from '../engine/engine.js'
import { listen } from '../transport/server.js'
import { WorkerAdmission } from './admission.js'
import { done, IpcChannel } from './ipc.js'
import { IPC_FD } from './primary.js'
import { WorkerCluster } from './survey.js'
import { WorkerUserConnections } from './user-connections.js'
import { WorkerEngine, WorkerPresenceClient } from './worker-engine.js'

export interface WorkerParts {
  readonly environment: Environment
  readonly version: string
  /** Beyond what the farewells take. */
  readonly goodbyeMs: number
}

/** One of several processes that share a port. What all of them share is in another process, at the end of a link. */
export const runWorker = async (parts: WorkerParts): Promise<void> => {
  // SIGHUP to the process group reaches workers too. It means nothing here: the primary reloads and sends the file.
  const ipc = new IpcChannel(new Socket({ fd: IPC_FD, readable: true, writable: true }), (error) => {
    throw error
  })
  // Without the primary there is nothing to serve. It has been restarted, or it will be.
  const orphaned = { leave: (): void => undefined }
  const end = (): never => {
    orphaned.leave()
    process.exit(1)
  }
  void ipc.closed.then(end)
  // First, because Node's cluster ends the process on this event.
  process.prependOnceListener('disconnect', end)
  // It may be told to stop before it has begun.
  ipc.onMessage({ stop: () => process.exit(0) })
  ipc.onRequest({ ping: () => done })
  const begun = await beginning(ipc)
  try {
    await serve(ipc, begun, orphaned, parts)
  } catch (error) {
    ipc.send('failed', (out) => out.text(error instanceof Error ? error.message : String(error)))
    ipc.end()
  }
}

interface Begun {
  readonly number: number
  /** Follows the file that the config is read from, from the very beginning. */
  readonly file: { text: string; changed: () => void }
}

const serve = async (
  ipc: IpcChannel,
  begun: Begun,
  orphaned: { leave: () => void },
  { environment, version, goodbyeMs }: WorkerParts
): Promise<void> => {
  const { number, file } = begun
  let config = relayConfig(environment, () => file.text)
  const log = createLogger({ name: 'relay', level: config.logLevel }).child({ worker: number })
  const name = `relay worker ${number}`
  // With Redis every worker is a node by itself.
  const shared = config.engine === 'memory' ? { engine: owned(ipc) } : {}
  const {
    server,
    configure,
    close,
    closeConnections: cutOff
  } = await buildRelay(config, {
    log,
    version,
    name,
    ...shared,
    admission: new WorkerAdmission(ipc),
    metricsOfAll: (own) => metricsOfAll(ipc, own)
  })
  // The clients are closed with 3001: they reconnect at once, to whichever relay there is.
  orphaned.leave = cutOff
  file.changed = () => {
    const reload = reloadConfigFile(config, environment, () => file.text)
    if (!reload.ok) throw new Error(reload.faults.join('; '))
    config = reload.config
    log.level = config.logLevel
    configure(config)
  }
  // It may have changed while the relay was built.
  file.changed()
  const { address, port } = await listen(server, config.listen)
  const stop = closeOnSignal(
    { close, closeConnections: cutOff, abandon: cutOff },
    log,
    () => config.shutdownMs + goodbyeMs
  )
  ipc.onMessage({ stop })
  ipc.send('listening', (out) => out.text(address).number(port))
}

const beginning = (ipc: IpcChannel): Promise<Begun> =>
  new Promise((resolve) => {
    ipc.onMessage({
      begin: (fields) => {
        const file = { text: '', changed: (): void => undefined }
        const number = fields.number()
        file.text = fields.textOrNull() ?? ''
        ipc.onRequest({
          configure: async (again) => {
            file.text = again.textOrNull() ?? ''
            file.changed()
            return done
          }
        })
        resolve({ number, file })
      }
    })
  })

/** The one that started all of them puts their numbers together. */
const metricsOfAll = (ipc: IpcChannel, own: () => Promise<string>): (() => Promise<string>) => {
  ipc.onRequest({
    ownMetrics: async () => {
      const text = await own()
      return (out) => out.text(text)
    }
  })
  return () => ipc.request('readMetrics', done, (fields) => fields.text())
}

const owned = (ipc: IpcChannel): Engine => {
  const engine = new WorkerEngine(ipc)
  return {
    broker: engine,
    history: engine,
    presence: new WorkerPresenceClient(ipc),
    cluster: new WorkerCluster(ipc),
    userConnections: new WorkerUserConnections(ipc),
    isReady: true,
    sweep: () => undefined,
    close: () => undefined
  }
}
