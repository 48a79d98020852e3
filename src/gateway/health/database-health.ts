import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { monotonicMs } from '../../shared/monotonic.js'
import { cachedCheck, type HealthState } from './cached-check.js'
import type { CheckError } from './database-worker.js'

export type DatabaseFailure = 'refused' | 'timeout' | 'authentication' | 'unknown database' | 'unreachable' | 'error'
export type DatabaseState = HealthState<DatabaseFailure>

export interface DatabaseHealthOptions {
  /** For connecting and the query together. */
  readonly timeoutMs?: number
  readonly now?: () => number
}

const TIMEOUT_MS = 2_000

/**
 * Checks whether the database responds to `SELECT 1`. Nothing else in the gateway connects to a database.
 *
 * Each check opens a connection and closes it. A kept connection would not prove that the database accepts new
 * connections with these credentials. At one check per second this costs a few milliseconds. The checks run in a worker
 * thread: see `database-worker.ts`.
 */
export class DatabaseHealth {
  /** Never rejects. Calls within a second share one result. */
  readonly check: () => Promise<DatabaseState>
  readonly #url: string
  readonly #timeoutMs: number
  #thread: Thread | null = null
  #closed = false

  constructor(url: string, { timeoutMs = TIMEOUT_MS, now = monotonicMs }: DatabaseHealthOptions = {}) {
    this.#url = url
    this.#timeoutMs = timeoutMs
    this.check = cachedCheck({ probe: () => this.#probe(), reasonOf, now })
    // Not at the first check, whose latency would include the start.
    this.#thread = this.#startThread()
  }

  /** Aborts a running check. Later checks fail without connecting. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#thread?.worker.terminate()
    // Waits for the running check, or for one that fails at once.
    await this.check()
  }

  async #probe(): Promise<void> {
    if (this.#closed) throw new Error('closed')
    this.#thread ??= this.#startThread()
    const error = await this.#errorOfCheck(this.#thread)
    if (error !== null) throw Object.assign(new Error(error.message), error)
  }

  /** Ends the thread if the check has no result: its connection may still be open. The next check starts another. */
  async #errorOfCheck({ worker, ready, exited }: Thread): Promise<CheckError | null> {
    // The start of the thread does not count: it says nothing about the database.
    await ready
    const late = new AbortController()
    const deadline = setTimeout(() => late.abort(new DeadlinePassed()), this.#timeoutMs)
    const signal = AbortSignal.any([exited, late.signal])
    worker.postMessage(this.#url)
    try {
      const [error] = await once(worker, 'message', { signal })
      return error
    } catch (error) {
      await worker.terminate()
      throw signal.aborted ? signal.reason : error
    } finally {
      clearTimeout(deadline)
    }
  }

  #startThread(): Thread {
    const worker = new Worker(new URL('./database-worker.js', import.meta.url))
    // An idle thread must not keep the process running.
    worker.unref()
    // A check that waits for the thread fails with its error. Without a listener it would be uncaught.
    worker.on('error', () => undefined)
    const exited = new AbortController()
    worker.once('exit', () => {
      exited.abort(new Error('closed'))
      if (this.#thread?.worker === worker) this.#thread = null
    })
    // Its first message.
    const ready = once(worker, 'message', { signal: exited.signal })
    ready.catch(() => undefined)
    return { worker, ready, exited: exited.signal }
  }
}

interface Thread {
  readonly worker: Worker
  readonly ready: Promise<unknown>
  readonly exited: AbortSignal
}

class DeadlinePassed extends Error {
  readonly code = 'ETIMEDOUT'
}

// Error codes of the operating system and of PostgreSQL.
const REASONS: Readonly<Record<string, DatabaseFailure>> = {
  ECONNREFUSED: 'refused',
  ETIMEDOUT: 'timeout',
  ENOTFOUND: 'unreachable',
  EAI_AGAIN: 'unreachable',
  EHOSTUNREACH: 'unreachable',
  EHOSTDOWN: 'unreachable',
  ENETUNREACH: 'unreachable',
  ENETDOWN: 'unreachable',
  '28000': 'authentication',
  '28P01': 'authentication',
  '3D000': 'unknown database'
}

const reasonOf = (error: unknown): DatabaseFailure => {
  // Errors of the socket or of pg; `code` is optional.
  const { code = '', syscall, message } = error as NodeJS.ErrnoException
  // A missing Unix socket. Other files, such as certificates, may be missing too.
  if (code === 'ENOENT' && syscall === 'connect') return 'unreachable'
  // Errors of the driver during authentication, such as a missing password, have no code.
  return REASONS[code] ?? (message.startsWith('SASL') ? 'authentication' : 'error')
}
