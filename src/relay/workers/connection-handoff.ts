import type { Worker } from 'node:cluster'
import type { Server as HttpServer } from 'node:http'
import { createServer, Socket } from 'node:net'
import { listen } from '../transport/server.js'
import type { IpcChannel } from './ipc.js'

// The primary accepts all connections and passes each one to a worker with `worker.send(message, socket)`. Workers take turns, so
// that all have the same share of clients, which stay connected for hours.

/** Accompanies every socket that is passed to a worker. */
const CONNECTION_MESSAGE = 'connection'

interface Target {
  readonly worker: Worker
  /** The connection that the worker has not confirmed yet. A worker gets one connection at a time. */
  pending: Socket | null
  isDraining: boolean
}

/** The primary's side. */
export class ConnectionDispatcher {
  // Paused: no data is read here. The worker's copy of the socket inherits the option noDelay.
  readonly #server = createServer({ pauseOnConnect: true, noDelay: true }, (socket) => this.#dispatch(socket))
  readonly #targets = new Set<Target>()
  /** Targets without a pending connection; the first one gets the next connection. */
  readonly #free: Target[] = []
  readonly #waiting: Socket[] = []

  async listen(address: { readonly host: string; readonly port: number }): Promise<{ host: string; port: number }> {
    const { address: host, port } = await listen(this.#server, address)
    return { host, port }
  }

  /** Passes connections to a worker until it drains or its IPC channel closes. */
  add(worker: Worker, ipc: IpcChannel): void {
    const target: Target = { worker, pending: null, isDraining: false }
    this.#targets.add(target)
    this.#free.push(target)
    ipc.onMessage({
      connectionAccepted: () => {
        // Closes the primary's copy only.
        target.pending?.destroy()
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
      target.pending?.destroy()
      target.pending = null
    })
    this.#pump()
  }

  /** Stops accepting connections. Established ones stay with their workers. */
  close(): void {
    this.#server.close()
    for (const socket of this.#waiting.splice(0)) socket.destroy()
  }

  #dispatch(socket: Socket): void {
    // The worker reports errors of the connection.
    socket.on('error', () => undefined)
    this.#waiting.push(socket)
    this.#pump()
  }

  #pump(): void {
    if (this.#targets.size === 0) for (const socket of this.#waiting.splice(0)) socket.destroy()
    while (this.#free.length > 0) {
      const socket = this.#waiting.shift()
      const target = socket && this.#free.shift()
      if (socket === undefined || target === undefined) return
      target.pending = socket
      // Kept open until the worker has confirmed it. A failure to send means that the worker is ending.
      target.worker.send(CONNECTION_MESSAGE, socket, { keepOpen: true }, () => undefined)
    }
  }

  #release(target: Target): void {
    target.pending = null
    if (!target.isDraining) this.#free.push(target)
    this.#pump()
  }

  #remove(target: Target): void {
    target.isDraining = true
    this.#targets.delete(target)
    const index = this.#free.indexOf(target)
    if (index >= 0) this.#free.splice(index, 1)
    this.#pump()
  }
}

/** The worker's side: passes the received connections to its HTTP server. */
export class ConnectionReceiver {
  readonly #ipc: IpcChannel
  #isDraining = false
  #open = 0
  #resolveClosed = (): void => undefined
  readonly #socketClosed = (): void => {
    this.#open -= 1
    if (this.#open === 0) this.#resolveClosed()
  }

  constructor(ipc: IpcChannel) {
    this.#ipc = ipc
  }

  /** The server receives connections from now on, without listening itself. */
  serve(server: HttpServer): void {
    // http.Server checks its request timeouts from this event on. Really listening would open a second entrance to this worker.
    server.emit('listening')
    process.on('message', (message, handle) => {
      if (message !== CONNECTION_MESSAGE) return
      if (this.#isDraining) {
        if (handle instanceof Socket) handle.destroy()
        this.#ipc.send('connectionReturned')
        return
      }
      this.#ipc.send('connectionAccepted')
      // The handle is missing if the client disconnected meanwhile.
      if (handle instanceof Socket) this.#inject(server, handle)
    })
  }

  /** Receives no further connections. */
  drain(): void {
    this.#isDraining = true
    this.#ipc.send('draining')
  }

  /** Resolves when all received connections are closed. */
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
