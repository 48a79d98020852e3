import type { Writable } from 'node:stream'
import type { Logger } from 'pino'
import { AppendFile } from './append-file.js'
import { auditLine, type Denial, overflowLine } from './audit-record.js'
import { sendToFallback } from './fallback-stream.js'

const MAX_PENDING_RECORDS = 10_000
const RETRY_AFTER_MS = 60_000

export interface AuditLogOptions {
  readonly file: string
  readonly logger: Pick<Logger, 'info' | 'warn' | 'error'>
  /** Takes the records, each behind a marker, while the file cannot; the process's stderr unless given. */
  readonly fallback?: Writable
  /** Milliseconds since the epoch. */
  readonly now?: () => number
  readonly maxPendingRecords?: number
  readonly retryAfterMs?: number
}

/**
 * Appends denied requests to a file, one JSON object per line, and to a stream while the file cannot be written.
 * Nothing here throws or rejects: a failing disk must not change the answer that a browser gets.
 */
export class AuditLog {
  readonly #path: string
  readonly #file: AppendFile
  readonly #logger: AuditLogOptions['logger']
  readonly #fallbackStream: Writable
  readonly #now: () => number
  readonly #maxPending: number
  readonly #retryAfterMs: number

  // Everything that touches the file hangs on this chain, so that no two of them ever overlap.
  #chain: Promise<void> = Promise.resolve()
  #flushScheduled = false
  #queue: string[] = []
  #inFlight = 0
  #dropped = 0
  #droppedUntold = 0
  #outage = false
  #triedAt = 0
  #closing: Promise<void> | undefined

  /** Resolves whether or not the file can be written; where it cannot, the logger is told once. */
  static async open(options: AuditLogOptions): Promise<AuditLog> {
    const log = new AuditLog(options)
    await log.reopen()
    return log
  }

  private constructor(options: AuditLogOptions) {
    this.#path = options.file
    this.#file = new AppendFile(options.file)
    this.#logger = options.logger
    this.#fallbackStream = options.fallback ?? process.stderr
    this.#now = options.now ?? Date.now
    this.#maxPending = options.maxPendingRecords ?? MAX_PENDING_RECORDS
    this.#retryAfterMs = options.retryAfterMs ?? RETRY_AFTER_MS
  }

  /** True from the first failure of the file until a record is in it again. */
  get fallback(): boolean {
    return this.#outage
  }

  /** Records that are in neither file nor stream, since the start. */
  get dropped(): number {
    return this.#dropped
  }

  /** Records that are accepted and not yet written. */
  get pending(): number {
    return this.#queue.length + this.#inFlight
  }

  /** Returns at once; the line is written behind the caller's back, in the order of the calls. */
  record(denial: Denial): void {
    const line = auditLine(denial, this.#now())
    if (this.#closing) {
      // The process is about to end: what waits in a queue now may never leave it.
      void this.#sendLate(line)
    } else if (this.pending >= this.#maxPending) {
      this.#drop(1)
    } else {
      this.#queue.push(line)
      this.#scheduleFlush()
    }
  }

  /** Resolves when everything recorded before this call has left the queue. */
  flush(): Promise<void> {
    return this.#enqueue(() => this.#flushQueue())
  }

  /** For log rotation: lines recorded from now on go to the file that the path names now. Ends the wait for a retry. */
  reopen(): Promise<void> {
    return this.#enqueue(async () => {
      if (!this.#closing) await this.#openFile()
    })
  }

  /** Flushes, then lets go of the file. Records that come later go straight to the fallback. */
  close(): Promise<void> {
    this.#closing ??= this.#enqueue(async () => {
      await this.#flushQueue()
      await this.#file.close().catch((error) => this.#beginOutage(error))
    })
    return this.#closing
  }

  #enqueue(task: () => Promise<void>): Promise<void> {
    this.#chain = this.#chain.then(task)
    return this.#chain
  }

  // While a write is in flight its successor waits on the chain, and takes with it whatever has gathered until then.
  #scheduleFlush(): void {
    if (this.#flushScheduled) return
    this.#flushScheduled = true
    void this.#enqueue(() => {
      this.#flushScheduled = false
      return this.#flushQueue()
    })
  }

  async #flushQueue(): Promise<void> {
    const lines = this.#queue
    const told = this.#droppedUntold
    this.#queue = []
    this.#inFlight = lines.length
    // Records are dropped only behind a full queue, so the line that counts them belongs at its end.
    if (told > 0) lines.push(overflowLine(told, this.#now()))

    const undelivered = await this.#deliver(lines)
    this.#inFlight = 0
    if (undelivered > 0) {
      // The count was the last line, so it is not out either: it stays untold until the next record tries again.
      this.#drop(told > 0 ? undelivered - 1 : undelivered)
      return
    }
    this.#droppedUntold -= told
    if (this.#droppedUntold > 0) this.#scheduleFlush()
  }

  async #sendLate(line: string): Promise<void> {
    if (!(await sendToFallback(this.#fallbackStream, [line]))) this.#drop(1)
  }

  /** Returns how many of the last lines are in neither place. */
  async #deliver(lines: readonly string[]): Promise<number> {
    if (lines.length === 0) return 0
    const rest = lines.slice(await this.#appendToFile(lines))
    if (rest.length === 0) return 0
    // Waiting for the stream keeps a slow reader's backlog in our own queue, which is bounded.
    return (await sendToFallback(this.#fallbackStream, rest)) ? 0 : rest.length
  }

  async #appendToFile(lines: readonly string[]): Promise<number> {
    if (!this.#file.isOpen) {
      // Either way from the last try: a clock that was set back must not put off the next one by hours.
      if (Math.abs(this.#now() - this.#triedAt) < this.#retryAfterMs) return 0
      await this.#openFile()
      if (!this.#file.isOpen) return 0
    }
    const { written, failure } = await this.#file.append(lines)
    if (failure) this.#beginOutage(failure)
    else this.#endOutage()
    return written
  }

  async #openFile(): Promise<void> {
    await this.#file.open().catch((error) => this.#beginOutage(error))
  }

  #beginOutage(error: unknown): void {
    this.#triedAt = this.#now()
    if (this.#outage) return
    this.#outage = true
    this.#logger.warn({ err: error, file: this.#path }, 'audit file cannot be written, records go to the fallback')
  }

  // Called after a write: a file on a full disk opens without complaint, so opening proves nothing.
  #endOutage(): void {
    if (!this.#outage) return
    this.#outage = false
    this.#logger.info({ file: this.#path }, 'audit file is written again')
  }

  #drop(count: number): void {
    if (this.#droppedUntold === 0) this.#logger.error({ pending: this.pending }, 'audit records are dropped')
    this.#dropped += count
    this.#droppedUntold += count
  }
}
