import { Socket } from 'node:net'
import { messageOf } from '../../shared/error-message.js'
import type { Engine } from '../core/engine.js'
import { ConnectionReceiver } from './connection-handoff.js'
import { WorkerAdmission } from './connection-limits.js'
import { IpcConnection, NO_FIELDS } from './ipc.js'
import { IPC_FD } from './processes.js'
import { type Addresses, readAddresses, SharedPort, type WorkerConnections } from './shared-port.js'
import { WorkerChannelStates } from './worker-channel-states.js'
import { WorkerCluster } from './worker-cluster.js'
import { WorkerEngine, WorkerPresence } from './worker-engine.js'
import { WorkerMaps } from './worker-maps.js'
import { WorkerUserConnections } from './worker-user-connections.js'
import { WorkerUserRates } from './worker-user-rates.js'

/** A worker's connection to the primary process, which holds the state that all workers share. */
export class PrimaryConnection {
  readonly workerNumber: number
  /** Counts the connections of all workers against the limits. */
  readonly admission: WorkerAdmission
  readonly connections: WorkerConnections
  /** Called before the process exits because the primary is gone. */
  onLost: () => void = () => undefined
  /** Called when the primary has sent a new configuration file. An error is reported to the primary. */
  onConfigFile: () => void = () => undefined
  readonly #ipc: IpcConnection
  #configFile: string

  private constructor(ipc: IpcConnection, workerNumber: number, configFile: string, addresses: Addresses | null) {
    this.#ipc = ipc
    this.workerNumber = workerNumber
    this.#configFile = configFile
    this.admission = new WorkerAdmission(ipc)
    this.connections = addresses === null ? new ConnectionReceiver(ipc) : new SharedPort(addresses)
    ipc.onRequest({
      configure: async (fields) => {
        this.#configFile = fields.textOrNull() ?? ''
        this.onConfigFile()
        return NO_FIELDS
      }
    })
  }

  /** Resolves when the primary has sent the worker's number and the configuration file. */
  static open(): Promise<PrimaryConnection> {
    const ipc = new IpcConnection(new Socket({ fd: IPC_FD, readable: true, writable: true }), (error) => {
      throw error
    })
    let connection: PrimaryConnection | null = null
    // A worker cannot serve clients without the primary. A restarted primary starts its own workers.
    const exit = (): never => {
      connection?.onLost()
      process.exit(1)
    }
    void ipc.closed.then(exit)
    // Prepended because the cluster module exits the process in its own listener.
    process.prependOnceListener('disconnect', exit)
    // The primary may stop a worker that has not started yet.
    ipc.onMessage({ stop: () => process.exit(0), shutdownAnnounced: () => undefined })
    ipc.onRequest({ ping: () => NO_FIELDS })
    return new Promise((resolve) => {
      ipc.onMessage({
        start: (fields) => {
          const workerNumber = fields.number()
          const configFile = fields.textOrNull() ?? ''
          connection = new PrimaryConnection(ipc, workerNumber, configFile, readAddresses(fields))
          resolve(connection)
        }
      })
    })
  }

  /** The text of the configuration file that the primary sent last. */
  get configFile(): string {
    return this.#configFile
  }

  /** The engine whose state is in the primary. */
  engine(): Engine {
    const engine = new WorkerEngine(this.#ipc)
    return {
      broker: engine,
      history: engine,
      maps: new WorkerMaps(this.#ipc),
      presence: new WorkerPresence(this.#ipc),
      cluster: new WorkerCluster(this.#ipc),
      userConnections: new WorkerUserConnections(this.#ipc),
      userRates: new WorkerUserRates(this.#ipc),
      channelStates: new WorkerChannelStates(this.#ipc),
      isShared: false,
      isReady: true,
      probeChannels: (channel) => [{ channel, server: null }],
      sweep: () => undefined,
      close: async () => undefined
    }
  }

  /** Lets the primary read this worker's metrics as JSON. The returned function reads the text of all workers' metrics. */
  shareMetrics(readOwn: () => Promise<string>): () => Promise<string> {
    this.#ipc.onRequest({
      readWorkerMetrics: async () => {
        const text = await readOwn()
        return (out) => out.text(text)
      }
    })
    return () => this.#ipc.request('readMetrics', NO_FIELDS, (fields) => fields.text())
  }

  /** Reports that this worker can serve clients. Resolves when all workers can. */
  async ready(): Promise<void> {
    await this.#ipc.request('ready', NO_FIELDS, () => undefined)
  }

  /** Lets the primary pass connections to this worker. */
  reportServing(): void {
    this.#ipc.send('serving')
  }

  reportFailure(error: unknown): void {
    this.#ipc.send('startFailed', (out) => out.text(messageOf(error)))
    this.#ipc.end()
  }

  /** `announced` is called when the relay will stop, `stop` when this worker must. */
  onStop({ announced, stop }: { readonly announced: () => void; readonly stop: () => void }): void {
    this.#ipc.onMessage({ shutdownAnnounced: announced, stop })
  }
}
