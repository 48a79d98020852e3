import type { Worker } from 'node:cluster'
import type { Server as HttpServer } from 'node:http'
import { createServer, type Server, Socket } from 'node:net'
import type { ListenSettings } from '../../shared/listen-error.js'
import type { ListenAddress } from '../config/config.js'
import { listen } from '../transport/server.js'
import type { IpcConnection } from './ipc.js'
import type { WorkerConnections } from './shared-port.js'

// Where workers cannot share a port, the primary accepts all connections and passes each one to a worker with
// `worker.send(message, socket)`. Workers take turns, so that all have the same share of clients, which stay connected for hours.

/** The message that accompanies a socket to a worker: which listener accepted it. */
type Listener = 'connection' | 'internalConnection'

interface Connection {
  readonly socket: Socket
  readonly listener: Listener
}

interface WorkerTarget {
  readonly worker: Worker
  /** The connection that the worker has not confirmed yet. A worker gets one connection at a time. */
  pending: Connection | null
  isDraining: boolean
}

/** The primary's side. */
export class ConnectionDispatcher {
  readonly #servers: Server[] = []
  readonly #targets = new Set<WorkerTarget>()
  /** Targets without a pending connection; the first one gets the next connection. */
  readonly #free: WorkerTarget[] = []
  readonly #waiting: Connection[] = []

  async listen(address: ListenAddress, listener: Listener, settings: ListenSettings): Promise<ListenAddress> {
    // Paused: no data is read here. The worker's copy of the socket inherits the option noDelay.
    const server = createServer({ pauseOnConnect: true, noDelay: true }, (socket) =>
      this.#dispatch({ socket, listener })
    )
    this.#servers.push(server)
    const { address: host, port } = await listen(server, address, settings)
    return { host, port }
  }

  /** Passes connections to a worker until it drains or its IPC connection closes. */
  add(worker: Worker, ipc: IpcConnection): void {
    const target: WorkerTarget = { worker, pending: null, isDraining: false }
    this.#targets.add(target)
    this.#free.push(target)
    ipc.onMessage({
      connectionAccepted: () => {
        // Closes the primary's copy only.
        target.pending?.socket.destroy()
        this.#release(target)
      },
      connectionReturned: () => {
        if (target.pending !== null) this.#waiting.unshift(target.pending)
        this.#release(target)
      },
      draining: () => this.#remove(target)
    })
    void ipc.closed.then(() => {
      this.#remove(target)
      // The worker may have read from the connection, so it cannot be passed on. The client sees that it is closed and retries.
      target.pending?.socket.destroy()
      target.pending = null
    })
    this.#pump()
  }

  /** Stops accepting connections. Established ones stay with their workers. */
  close(): void {
    for (const server of this.#servers) server.close()
    for (const { socket } of this.#waiting.splice(0)) socket.destroy()
  }

  #dispatch(connection: Connection): void {
    // The worker reports errors of the connection.
    connection.socket.on('error', () => undefined)
    this.#waiting.push(connection)
    this.#pump()
  }

  #pump(): void {
    if (this.#targets.size === 0) for (const { socket } of this.#waiting.splice(0)) socket.destroy()
    while (this.#free.length > 0) {
      const connection = this.#waiting.shift()
      const target = connection && this.#free.shift()
      if (connection === undefined || target === undefined) return
      target.pending = connection
      // Kept open until the worker has confirmed it. A failure to send means that the worker is ending.
      target.worker.send(connection.listener, connection.socket, { keepOpen: true }, () => undefined)
    }
  }

  #release(target: WorkerTarget): void {
    target.pending = null
    if (!target.isDraining) this.#free.push(target)
    this.#pump()
  }

  #remove(target: WorkerTarget): void {
    target.isDraining = true
    this.#targets.delete(target)
    const index = this.#free.indexOf(target)
    if (index >= 0) this.#free.splice(index, 1)
    this.#pump()
  }
}

/** The worker's side: passes the received connections to its HTTP servers. */
export class ConnectionReceiver implements WorkerConnections {
  readonly #ipc: IpcConnection
  #isDraining = false
  #open = 0
  #resolveClosed = (): void => undefined
  readonly #socketClosed = (): void => {
    this.#open -= 1
    if (this.#open === 0) this.#resolveClosed()
  }

  constructor(ipc: IpcConnection) {
    this.#ipc = ipc
  }

  /** The servers do not listen themselves. */
  async serve(server: HttpServer, internalServer: HttpServer | null): Promise<void> {
    const servers = new Map<unknown, HttpServer>([['connection' satisfies Listener, server]])
    if (internalServer !== null) servers.set('internalConnection' satisfies Listener, internalServer)
    // http.Server checks its request timeouts from this event on. Really listening would open a second entrance to this worker.
    for (const each of servers.values()) each.emit('listening')
    process.on('message', (message, handle) => {
      const target = servers.get(message)
      if (target === undefined) return
      if (this.#isDraining) {
        if (handle instanceof Socket) handle.destroy()
        this.#ipc.send('connectionReturned')
        return
      }
      this.#ipc.send('connectionAccepted')
      // The handle is missing if the client disconnected meanwhile.
      if (handle instanceof Socket) this.#inject(target, handle)
    })
  }

  drain(): void {
    this.#isDraining = true
    this.#ipc.send('draining')
  }

  closed(): Promise<void> {
    return this.#open === 0
      ? Promise.resolve()
      : new Promise((resolve) => {
          this.#resolveClosed = resolve
        })
  }

  #inject(server: HttpServer, socket: Socket): void {
    this.#open += 1
    socket.once('close', this.#socketClosed)
    // As for the connections that an HTTP server accepts itself.
    socket.allowHalfOpen = true
    // Documented for injecting connections into an HTTP server.
    server.emit('connection', socket)
  }
}
