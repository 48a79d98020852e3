import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { Duplex, type Readable } from 'node:stream'
import type { Logger } from 'pino'
import { messageOf } from '../../shared/error-message.js'
import { monotonicMs } from '../../shared/monotonic.js'
import { INTERNAL_LISTEN_SETTINGS, LISTEN_SETTINGS, type ListenAddress } from '../config/config.js'
import { ConnectionDispatcher } from './connection-handoff.js'
import { IpcConnection, NO_FIELDS } from './ipc.js'
import { type Addresses, canSharePort, reserveAddresses, writeAddresses } from './shared-port.js'

const FIRST_RESTART_DELAY_MS = 100
const MAX_RESTART_DELAY_MS = 30_000
/** A worker that has run for this long did not fail because of its start. */
const STABLE_MS = 60_000

/** Exponential back-off: the delay before a restart doubles until a worker stays up. */
class RestartBackoff {
  #nextMs = FIRST_RESTART_DELAY_MS

  delayAfter(uptimeMs: number): number {
    if (uptimeMs >= STABLE_MS) this.#nextMs = FIRST_RESTART_DELAY_MS
    const delayMs = this.#nextMs
    this.#nextMs = Math.min(delayMs * 2, MAX_RESTART_DELAY_MS)
    return delayMs
  }
}

/** File descriptor of the IPC connection in a worker, which inherits one end of a socket pair. */
export const IPC_FD = 4

export interface RunningWorker {
  readonly number: number
  readonly ipc: IpcConnection
}

interface WorkerProcess {
  readonly worker: Worker
  readonly ipc: IpcConnection
  readonly startedAt: number
}

/** A worker is ready when it is built. It serves clients when all other workers have been ready. */
interface WorkerStart {
  readonly ready: Promise<void>
  readonly serving: Promise<void>
}

/** Called when the worker reports it. */
type WorkerStarted = { readonly [State in keyof WorkerStart]: () => void }

export interface WorkerProcessesDependencies {
  readonly count: number
  readonly listen: ListenAddress
  readonly internalListen: ListenAddress | null
  /** A worker that does not reply for this long is killed and replaced. */
  readonly hungMs: number
  readonly log: Logger
  /** Writes complete lines of the workers' logs. */
  readonly output: (lines: string) => void
  /** The current text of the configuration file. */
  readonly configFile: () => string | null
  /** Serves a worker until its IPC connection closes. */
  readonly serve: (ipc: IpcConnection, number: number) => void
}

/** How long a worker may run after its IPC connection has closed. */
const EXIT_TIMEOUT_MS = 2000

/** Unanswered pings after which a worker is hung. Counted, not timed: the primary itself may have been suspended. */
const MAX_UNANSWERED_PINGS = 6

/** The worker processes. One that exits is replaced by a new one with the same number. */
export class WorkerProcesses {
  readonly #dependencies: WorkerProcessesDependencies
  readonly #connections = new ConnectionDispatcher()
  /** The addresses that the workers listen on themselves. Null: the primary accepts the connections. */
  #shared: Addresses | null = null
  readonly #running = new Map<number, WorkerProcess>()
  readonly #restartTimers = new Map<number, NodeJS.Timeout>()
  readonly #backoffs = new Map<number, RestartBackoff>()
  #isShutdownAnnounced = false
  #isStopping = false
  /** Fails the start of the relay. Null once all workers have been ready: a worker that exits later is replaced. */
  #failStart: ((error: Error) => void) | null = null
  #allowServing = (): void => undefined
  /** Resolves when all workers have been ready. */
  readonly #mayServe = new Promise<void>((resolve) => {
    this.#allowServing = resolve
  })

  constructor(dependencies: WorkerProcessesDependencies) {
    this.#dependencies = dependencies
    // Workers log through the primary, because sharing its standard output would change whether writes to it block.
    cluster.setupPrimary({ stdio: ['inherit', 'pipe', 'inherit', 'ipc', 'pipe'] })
  }

  /**
   * Resolves when all workers serve clients. They begin together: the clients that return after a restart would all connect to the
   * first worker otherwise, and stay there.
   */
  async start(): Promise<Addresses> {
    const failed = new Promise<never>((_, reject) => {
      this.#failStart = reject
    })
    const { listen, internalListen, count } = this.#dependencies
    if (canSharePort()) this.#shared = await reserveAddresses(listen, internalListen)
    const first = this.#startWorker(1)
    await Promise.race([first.ready, failed])
    const workers = [first, ...Array.from({ length: count - 1 }, (_, index) => this.#startWorker(index + 2))]
    await Promise.race([Promise.all(workers.map(({ ready }) => ready)), failed])
    this.#allowServing()
    await Promise.race([Promise.all(workers.map(({ serving }) => serving)), failed])
    this.#failStart = null
    return this.#shared ?? this.#listen()
  }

  async #listen(): Promise<Addresses> {
    const { listen, internalListen } = this.#dependencies
    return {
      external: await this.#connections.listen(listen, 'connection', LISTEN_SETTINGS),
      internal:
        internalListen === null
          ? null
          : await this.#connections.listen(internalListen, 'internalConnection', INTERNAL_LISTEN_SETTINGS)
    }
  }

  get running(): readonly RunningWorker[] {
    return [...this.#running].map(([number, { ipc }]) => ({ number, ipc }))
  }

  /** The health check of all workers fails from now on. They still serve clients. */
  announceShutdown(): void {
    this.#isShutdownAnnounced = true
    for (const { ipc } of this.#running.values()) ipc.send('shutdownAnnounced')
  }

  /** Stops all workers, which close their clients. Resolves when all processes have exited. */
  async stop(): Promise<void> {
    this.#isStopping = true
    this.#connections.close()
    for (const timer of this.#restartTimers.values()) clearTimeout(timer)
    // The event 'close' comes after the last lines of the log, unlike 'exit'.
    const closed = [...this.#running.values()].map(({ worker }) => once(worker.process, 'close'))
    for (const { ipc } of this.#running.values()) ipc.send('stop')
    await Promise.all(closed)
  }

  kill(): void {
    for (const { worker } of this.#running.values()) worker.process.kill('SIGKILL')
  }

  #startWorker(number: number): WorkerStart {
    let startServing = (): void => undefined
    const serving = new Promise<void>((resolve) => {
      startServing = resolve
    })
    const ready = new Promise<void>((resolve) => {
      try {
        this.#fork(number, { ready: resolve, serving: startServing })
      } catch (error) {
        this.#exited(number, messageOf(error))
      }
    })
    return { ready, serving }
  }

  #fork(number: number, started: WorkerStarted): void {
    const { log, output, configFile, serve } = this.#dependencies
    const worker = cluster.fork()
    worker.on('error', (error) => {
      log.error({ err: error, worker: number }, 'worker process error')
      // The process could not be started; there is no event 'exit' then.
      if (worker.process.pid === undefined) this.#exited(number, error.message)
    })
    // Without file descriptors or memory for a new process there are no streams either.
    const stream = worker.process.stdio?.[IPC_FD]
    if (!(stream instanceof Duplex)) return
    forwardLines(worker.process.stdout, output)
    const ipc = new IpcConnection(stream, (error) =>
      log.error({ err: error, worker: number }, 'malformed IPC frame from worker')
    )
    this.#running.set(number, { worker, ipc, startedAt: monotonicMs() })
    serve(ipc, number)
    ipc.send('start', (out) => writeAddresses(out.number(number).textOrNull(configFile()), this.#shared))
    worker.once('exit', (code: number | null, signal: string | null) => {
      // SIGHUP to the process group ends a worker that does not handle it yet. That must not end a relay that is starting.
      if (signal === 'SIGHUP' && this.#failStart !== null && !this.#isStopping) this.#fork(number, started)
      else this.#exited(number, code ?? signal)
    })
    // A worker without an IPC connection cannot serve clients.
    void ipc.closed.then(() => setTimeout(() => worker.process.kill('SIGKILL'), EXIT_TIMEOUT_MS).unref())
    ipc.onRequest({
      ready: async () => {
        this.#killWhenHung(number, worker, ipc)
        started.ready()
        await this.#mayServe
        return NO_FIELDS
      }
    })
    ipc.onMessage({
      serving: () => {
        if (this.#isShutdownAnnounced) ipc.send('shutdownAnnounced')
        if (this.#shared === null) this.#connections.add(worker, ipc)
        started.serving()
      },
      startFailed: (fields) => this.#startFailed(number, fields.text())
    })
  }

  #killWhenHung(number: number, worker: Worker, ipc: IpcConnection): void {
    const { log, hungMs } = this.#dependencies
    let unanswered = 0
    const responded = (): void => {
      unanswered = 0
    }
    const timer = setInterval(() => {
      if (unanswered === MAX_UNANSWERED_PINGS) {
        clearInterval(timer)
        log.error({ worker: number, workerPid: worker.process.pid, hungMs }, 'hung worker killed')
        worker.process.kill('SIGKILL')
        return
      }
      unanswered++
      // A ping fails only if the IPC connection closes, which ends the worker.
      ipc.request('ping', NO_FIELDS, responded).catch(() => undefined)
    }, hungMs / MAX_UNANSWERED_PINGS).unref()
    void ipc.closed.then(() => clearInterval(timer))
  }

  #startFailed(number: number, reason: string): void {
    if (this.#failStart === null) this.#dependencies.log.error({ worker: number, reason }, 'worker start failed')
    else this.#failStart(new Error(reason))
  }

  #exited(number: number, how: number | string | null): void {
    const { log } = this.#dependencies
    const uptimeMs = monotonicMs() - (this.#running.get(number)?.startedAt ?? 0)
    this.#running.delete(number)
    if (this.#isStopping) return
    if (this.#failStart !== null) {
      this.#failStart(new Error(`worker ${number} ended with ${how}`))
      return
    }
    const backoff = this.#backoffs.get(number) ?? new RestartBackoff()
    this.#backoffs.set(number, backoff)
    const delayMs = backoff.delayAfter(uptimeMs)
    log[how === 0 ? 'info' : 'error']({ worker: number, exit: how, delayMs }, 'worker exited')
    const restart = async (): Promise<void> => {
      this.#restartTimers.delete(number)
      await this.#startWorker(number).serving
      log.info({ worker: number }, 'worker replaced')
    }
    this.#restartTimers.set(number, setTimeout(restart, delayMs))
  }
}

/** Forwards complete lines of a worker's log; a last line without an end is completed when the process exits. */
const forwardLines = (stdout: Readable | null, output: (lines: string) => void): void => {
  let incomplete = ''
  stdout?.setEncoding('utf8').on('data', (text: string) => {
    const end = text.lastIndexOf('\n') + 1
    if (end > 0) output(incomplete + text.slice(0, end))
    incomplete = end > 0 ? text.slice(end) : incomplete + text
  })
  stdout?.on('end', () => {
    if (incomplete !== '') output(`${incomplete}\n`)
  })
}
