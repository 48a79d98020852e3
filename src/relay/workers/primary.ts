import type { ChildProcess } from 'node:child_process'
import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import type { Duplex, Readable } from 'node:stream'
import type { Logger } from 'pino'
import { onHangup } from '../../shared/hangup.js'
import { standardOutput } from '../../shared/log-output.js'
import { monotonicMs } from '../../shared/monotonic.js'
import { closeOnSignal } from '../../shared/shutdown.js'
import type { RelayConfig } from '../config/config.js'
import { logReload, type Reload } from '../config/reload.js'
import { type MemoryParts, MemoryUserConnections } from '../engine/memory.js'
import { PrimaryAdmission } from './admission.js'
import { done, IpcChannel, IpcClosed } from './ipc.js'
import { PrimaryMetrics } from './metrics.js'
import { PrimaryEngine } from './primary-engine.js'
import { PrimarySurvey, withTimeout } from './survey.js'
import { serveUserConnections } from './user-connections.js'

const FIRST_MS = 100
const LONGEST_MS = 30_000
/** Who has lived so long did not die of how it was started. */
const SETTLED_MS = 60_000

/** How long to wait before what has ended is started again: twice as long each time, until it stays. */
export class Backoff {
  #nextMs = FIRST_MS

  afterLiving(ms: number): number {
    if (ms >= SETTLED_MS) this.#nextMs = FIRST_MS
    const delayMs = this.#nextMs
    this.#nextMs = Math.min(delayMs * 2, LONGEST_MS)
    return delayMs
  }
}

/** A connection on its way to a worker, as Node's cluster passes it on. */
interface Handle {
  close(): void
}

interface ClusterMessage {
  readonly act?: string
  readonly seq?: number
  readonly ack?: number
}

/**
 * Node's cluster takes a connection and hands it to a worker in turn; one that the worker had not yet taken when it was
 * killed stays open in the primary for ever, and its client waits for ever. Here such connections are closed, so that
 * their clients come again. It looks at messages that are internal to Node; should they change, nothing but this ceases.
 */
export const closeUnclaimedConnections = (worker: ChildProcess): void => {
  const onTheirWay = new Map<number, Handle>()
  const send = worker.send.bind(worker) as (message: ClusterMessage, handle?: Handle, ...rest: unknown[]) => boolean
  worker.send = ((message: ClusterMessage, handle?: Handle, ...rest: unknown[]): boolean => {
    if (message.act === 'newconn' && message.seq !== undefined && handle) onTheirWay.set(message.seq, handle)
    return send(message, handle, ...rest)
  }) as typeof worker.send
  worker.on('internalMessage', ({ ack }: ClusterMessage) => {
    if (ack !== undefined) onTheirWay.delete(ack)
  })
  worker.once('exit', () => {
    for (const handle of onTheirWay.values()) handle.close()
  })
}

/** Where a worker finds its end of the link: a pair of sockets that it inherits, and that has no name anywhere. */
export const IPC_FD = 4

export interface Address {
  readonly host: string
  readonly port: number
}

export interface RunningWorker {
  readonly number: number
  readonly link: IpcChannel
}

export interface WorkerProcessesParts {
  readonly count: number
  /** A worker that answers nothing for so long is replaced. */
  readonly hungMs: number
  readonly log: Logger
  /** Takes what the workers log, in whole lines. */
  readonly output: (lines: string) => void
  /** The text of the config file, which may have changed since the program was started. */
  readonly file: () => string | null
  /** Serves a worker until its link closes. */
  readonly serve: (ipc: IpcChannel, number: number) => void
}

/** How long a process may outlive its link. */
const LINGER_MS = 2000

/** Pings in a row that a hung worker leaves unanswered. They are counted, because this process may have stood still itself. */
const MAX_UNANSWERED = 6

/** The processes that serve clients. One that ends is replaced, by one with the same number. */
export class WorkerProcesses {
  readonly #parts: WorkerProcessesParts
  readonly #running = new Map<number, { readonly process: Worker; readonly link: IpcChannel; readonly since: number }>()
  readonly #replacements = new Map<number, NodeJS.Timeout>()
  readonly #backoffs = new Map<number, Backoff>()
  #isStopping = false
  /** Until all have listened once: a worker that ends before cannot be helped by another one. */
  #giveUp: ((error: Error) => void) | null = null

  constructor(parts: WorkerProcessesParts) {
    this.#parts = parts
    // A worker's log goes through the primary: workers that shared its standard output would change how it blocks.
    cluster.setupPrimary({ stdio: ['inherit', 'pipe', 'inherit', 'ipc', 'pipe'] })
    // In turn, so that all get the same share of clients, who stay for hours.
    cluster.schedulingPolicy = cluster.SCHED_RR
  }

  /** Done when all of them listen. */
  async start(): Promise<Address> {
    const failed = new Promise<never>((_, reject) => {
      this.#giveUp = reject
    })
    // Where a port is to be chosen, the first one chooses it.
    const address = await Promise.race([this.#begin(1), failed])
    const others = Array.from({ length: this.#parts.count - 1 }, (_, index) => this.#begin(index + 2))
    await Promise.race([Promise.all(others), failed])
    this.#giveUp = null
    return address
  }

  get running(): readonly RunningWorker[] {
    return [...this.#running].map(([number, { link }]) => ({ number, link }))
  }

  /** Sends all clients away; done when no process is left. */
  async stop(): Promise<void> {
    this.#isStopping = true
    for (const timer of this.#replacements.values()) clearTimeout(timer)
    // Closed, not only ended: the last lines of its log have arrived too.
    const ended = [...this.#running.values()].map(({ process }) => once(process.process, 'close'))
    for (const { link } of this.running) link.send('stop', () => undefined)
    await Promise.all(ended)
  }

  kill(): void {
    for (const { process } of this.#running.values()) process.process.kill('SIGKILL')
  }

  #begin(number: number): Promise<Address> {
    return new Promise((resolve) => this.#fork(number, resolve))
  }

  #fork(number: number, listening: (address: Address) => void): void {
    const { log, output, file, serve } = this.#parts
    const process = cluster.fork()
    closeUnclaimedConnections(process.process)
    passOnLines(process.process.stdout, output)
    const ipc = new IpcChannel(process.process.stdio[IPC_FD] as Duplex, (error) =>
      log.error({ err: error, worker: number }, 'a worker says what cannot be read')
    )
    this.#running.set(number, { process, link: ipc, since: monotonicMs() })
    serve(ipc, number)
    ipc.send('begin', (out) => out.number(number).textOrNull(file()))
    process.once('exit', (code: number | null, signal: string | null) => {
      // SIGHUP to the process group, before this process could listen for it, must not end a relay that is starting.
      if (signal === 'SIGHUP' && this.#giveUp !== null && !this.#isStopping) this.#fork(number, listening)
      else this.#ended(number, code ?? signal)
    })
    // A worker that cannot be spoken to any more serves nobody.
    void ipc.closed.then(() => setTimeout(() => process.process.kill('SIGKILL'), LINGER_MS).unref())
    ipc.onMessage({
      listening: (fields) => {
        this.#killWhenHung(number, process, ipc)
        listening({ host: fields.text(), port: fields.number() })
      },
      failed: (fields) => this.#failed(number, fields.text())
    })
  }

  #killWhenHung(number: number, process: Worker, ipc: IpcChannel): void {
    const { log, hungMs } = this.#parts
    let unanswered = 0
    const answered = (): void => {
      unanswered = 0
    }
    const pinging = setInterval(() => {
      if (unanswered === MAX_UNANSWERED) {
        clearInterval(pinging)
        log.error({ worker: number, pid: process.process.pid, hungMs }, 'hung worker killed')
        process.process.kill('SIGKILL')
        return
      }
      unanswered++
      // A link that breaks has ended the worker already.
      ipc.request('ping', done, answered).catch(() => undefined)
    }, hungMs / MAX_UNANSWERED).unref()
    void ipc.closed.then(() => clearInterval(pinging))
  }

  #failed(number: number, why: string): void {
    if (this.#giveUp === null) this.#parts.log.error({ worker: number, why }, 'a worker cannot start')
    else this.#giveUp(new Error(why))
  }

  #ended(number: number, how: number | string | null): void {
    const { log } = this.#parts
    const livedMs = monotonicMs() - (this.#running.get(number)?.since ?? 0)
    this.#running.delete(number)
    if (this.#isStopping) return
    if (this.#giveUp !== null) {
      this.#giveUp(new Error(`worker ${number} ended with ${how}`))
      return
    }
    const backoff = this.#backoffs.get(number) ?? new Backoff()
    this.#backoffs.set(number, backoff)
    const delayMs = backoff.afterLiving(livedMs)
    log[how === 0 ? 'info' : 'error']({ worker: number, how, delayMs }, 'a worker has ended and will be replaced')
    const replace = async (): Promise<void> => {
      this.#replacements.delete(number)
      await this.#begin(number)
      log.info({ worker: number }, 'a worker has been replaced')
    }
    this.#replacements.set(number, setTimeout(replace, delayMs))
  }
}

/** A line that is cut off where a process was killed gets its end. */
const passOnLines = (stdout: Readable | null, output: (lines: string) => void): void => {
  let unfinished = ''
  stdout?.setEncoding('utf8').on('data', (text: string) => {
    const end = text.lastIndexOf('\n') + 1
    if (end > 0) output(unfinished + text.slice(0, end))
    unfinished = end > 0 ? text.slice(end) : unfinished + text
  })
  stdout?.on('end', () => {
    if (unfinished !== '') output(`${unfinished}\n`)
  })
}

const SWEEP_MS = 10_000

/** How long the primary waits for its workers. */
export interface PrimaryTimes {
  /** For a new config to be applied. */
  readonly reloadMs: number
  /** For an answer of any kind: a worker that is silent for longer is hung, and is replaced. */
  readonly hungMs: number
}

export const PRIMARY_TIMES: PrimaryTimes = { reloadMs: 10_000, hungMs: 30_000 }

export interface ConfigWithFile {
  readonly config: RelayConfig
  /** The text of the file that it was read from. */
  readonly file: string | null
}

export interface PrimaryParts extends MemoryParts, ConfigWithFile {
  readonly log: Logger
  /** How long the workers may take to stop. */
  readonly graceMs: (config: RelayConfig) => number
  readonly times: PrimaryTimes
  /** Reads the file again. */
  readonly reload: (current: RelayConfig) => { readonly outcome: Reload; readonly file: string | null }
}

/** The process that starts the workers and owns what they share. It serves no clients itself. */
export const runPrimary = async (parts: PrimaryParts): Promise<Address> => {
  const { log, graceMs, times } = parts
  let { config, file } = parts
  const primary = new PrimaryEngine(parts)
  const cluster = new PrimarySurvey()
  const admission = new PrimaryAdmission(parts.monotonicMs)
  const metrics = new PrimaryMetrics()
  const userConnections = new MemoryUserConnections()
  const workers = new WorkerProcesses({
    count: config.workers,
    hungMs: times.hungMs,
    log,
    output: (lines) => standardOutput().write(lines),
    file: () => file,
    serve: (ipc, number) => {
      primary.serve(ipc)
      cluster.serve(ipc)
      admission.serve(ipc)
      metrics.serve(ipc, number)
      serveUserConnections(ipc, userConnections)
    }
  })
  setInterval(() => primary.sweep(), SWEEP_MS).unref()

  /** The number of a worker that has not applied the new config in time, else null. */
  const reach = async ({ number, link }: RunningWorker): Promise<number | null> => {
    const applied = link.request(
      'configure',
      (out) => out.textOrNull(file),
      () => 'applied' as const
    )
    const outcome = applied.catch((error) => {
      // A worker that has ended is replaced by one that starts with the new config.
      if (error instanceof IpcClosed) return 'ended'
      log.error({ err: error, worker: number }, 'config refused by a worker')
      return 'refused'
    })
    const inTime = await withTimeout(times.reloadMs, outcome)
    if (inTime !== null) return inTime === 'refused' ? number : null
    // The config stays on the link: the worker applies it when it goes on.
    void outcome.then((late) => {
      if (late === 'applied') log.info({ worker: number }, 'config applied late')
    })
    return number
  }

  const configure = async (): Promise<void> => {
    const reload = parts.reload(config)
    if (!reload.outcome.ok) {
      log.error({ faults: reload.outcome.faults }, 'config reload rejected')
      return
    }
    config = reload.outcome.config
    file = reload.file
    const unreached = (await Promise.all(workers.running.map(reach))).filter((number) => number !== null)
    logReload(log, reload.outcome, unreached)
  }

  closeOnSignal({ close: () => workers.stop(), closeConnections: () => workers.kill() }, log, () => graceMs(config))
  const address = await workers.start()
  onHangup(() => void configure())
  return address
}
