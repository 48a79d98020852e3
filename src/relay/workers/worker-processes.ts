import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import type { Duplex, Readable } from 'node:stream'
import type { Logger } from 'pino'
import { monotonicMs } from '../../shared/monotonic.js'
import { Backoff } from './backoff.js'
import { closeUntaken } from './handover.js'
import { done, Link } from './link.js'

/** Where a worker finds its end of the link: a pair of sockets that it inherits, and that has no name anywhere. */
export const LINK_FD = 4

export interface Address {
  readonly host: string
  readonly port: number
}

export interface RunningWorker {
  readonly number: number
  readonly link: Link
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
  readonly serve: (link: Link, number: number) => void
}

/** How long a process may outlive its link. */
const LINGER_MS = 2000

/** Pings in a row that a hung worker leaves unanswered. They are counted, because this process may have stood still itself. */
const MAX_UNANSWERED = 6

/** The processes that serve clients. One that ends is replaced, by one with the same number. */
export class WorkerProcesses {
  readonly #parts: WorkerProcessesParts
  readonly #running = new Map<number, { readonly process: Worker; readonly link: Link; readonly since: number }>()
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
    for (const { link } of this.running) link.tell('stop', () => undefined)
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
    closeUntaken(process.process)
    passOnLines(process.process.stdout, output)
    const link = new Link(process.process.stdio[LINK_FD] as Duplex, (error) =>
      log.error({ err: error, worker: number }, 'a worker says what cannot be read')
    )
    this.#running.set(number, { process, link, since: monotonicMs() })
    serve(link, number)
    link.tell('begin', (out) => out.number(number).textOrNull(file()))
    process.once('exit', (code: number | null, signal: string | null) => {
      // SIGHUP to the process group, before this process could listen for it, must not end a relay that is starting.
      if (signal === 'SIGHUP' && this.#giveUp !== null && !this.#isStopping) this.#fork(number, listening)
      else this.#ended(number, code ?? signal)
    })
    // A worker that cannot be spoken to any more serves nobody.
    void link.closed.then(() => setTimeout(() => process.process.kill('SIGKILL'), LINGER_MS).unref())
    link.hears({
      listening: (fields) => {
        this.#killWhenHung(number, process, link)
        listening({ host: fields.text(), port: fields.number() })
      },
      failed: (fields) => this.#failed(number, fields.text())
    })
  }

  #killWhenHung(number: number, process: Worker, link: Link): void {
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
      link.ask('ping', done, answered).catch(() => undefined)
    }, hungMs / MAX_UNANSWERED).unref()
    void link.closed.then(() => clearInterval(pinging))
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
