import type { Writable } from 'node:stream'
import type { Logger } from 'pino'
import { AddressQuota } from './address-quota.js'
import { AuditFile } from './audit-file.js'
import { type AuditedRejection, auditLine, overflowLine } from './audit-record.js'

const MAX_PENDING_RECORDS = 10_000
const RETRY_AFTER_MS = 60_000
const ANONYMOUS_PER_MINUTE = 100

export interface AuditLogOptions {
  readonly file: string
  readonly logger: Pick<Logger, 'info' | 'warn' | 'error'>
  /** Receives the records while the file cannot be written; stderr by default. */
  readonly fallback?: Writable
  /** Milliseconds since the epoch. */
  readonly now?: () => number
  readonly maxPendingRecords?: number
  readonly retryAfterMs?: number
  /** Records without a user per address. */
  readonly anonymousPerMinute?: number
}

/**
 * Appends rejected requests to a file, one JSON object per line, and writes them to a stream while the file cannot be
 * written. Its methods never throw or reject: a full disk must not change the response to a browser.
 */
export class AuditLog {
  readonly #path: string
  readonly #file: AuditFile
  readonly #logger: AuditLogOptions['logger']
  readonly #fallbackStream: Writable
  readonly #now: () => number
  readonly #maxPending: number
  readonly #retryAfterMs: number
  readonly #anonymous: AddressQuota

  /** File operations run one after the other on this chain. */
  #chain: Promise<void> = Promise.resolve()
  #isFlushScheduled = false
  #queue: string[] = []
  #inFlight = 0
  #dropped = 0
  #unreportedDrops = 0
  #isOutage = false
  #lastFailureAt = 0
  #closing: Promise<void> | undefined

  /** Resolves also if the file cannot be written; then a warning is logged. */
  static async open(options: AuditLogOptions): Promise<AuditLog> {
    const log = new AuditLog(options)
    await log.reopen()
    return log
  }

  private constructor(options: AuditLogOptions) {
    this.#path = options.file
    this.#file = new AuditFile(options.file)
    this.#logger = options.logger
    this.#fallbackStream = options.fallback ?? process.stderr
    this.#now = options.now ?? Date.now
    this.#maxPending = options.maxPendingRecords ?? MAX_PENDING_RECORDS
    this.#anonymous = new AddressQuota(options.anonymousPerMinute ?? ANONYMOUS_PER_MINUTE)
    this.#retryAfterMs = options.retryAfterMs ?? RETRY_AFTER_MS
  }

  /** True from the first failure of the file until a record is written to it again. */
  get fallback(): boolean {
    return this.#isOutage
  }

  /** Number of records that reached neither the file nor the fallback. */
  get dropped(): number {
    return this.#dropped
  }

  /** Number of records that are accepted and not yet written. */
  get pending(): number {
    return this.#queue.length + this.#inFlight
  }

  /** Returns at once. Of records without a user, an address has a limited number. The others are written in the order of the calls. */
  record(rejection: AuditedRejection): void {
    const now = this.#now()
    const omitted = rejection.user === null ? this.#anonymous.take(rejection.ip, now) : 0
    if (omitted === null) return
    const line = auditLine(rejection, now, omitted)
    if (this.#closing) {
      // The process is about to exit, so the queue may not be written any more.
      void this.#writeAfterClose(line)
    } else if (this.pending >= this.#maxPending) {
      this.#drop(1)
    } else {
      this.#queue.push(line)
      this.#scheduleFlush()
    }
  }

  /** Resolves when all records before this call are written or dropped. */
  flush(): Promise<void> {
    return this.#enqueue(() => this.#flushQueue())
  }

  /** For log rotation: records after this call go to the file that the path names now. Ends the wait for a retry. */
  reopen(): Promise<void> {
    return this.#enqueue(async () => {
      if (!this.#closing) await this.#openFile()
    })
  }

  /** Flushes and closes the file. Later records go to the fallback. */
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

  /** Records that arrive during a write are written together after it. */
  #scheduleFlush(): void {
    if (this.#isFlushScheduled) return
    this.#isFlushScheduled = true
    void this.#enqueue(() => {
      this.#isFlushScheduled = false
      return this.#flushQueue()
    })
  }

  async #flushQueue(): Promise<void> {
    const lines = this.#queue
    const reportedDrops = this.#unreportedDrops
    this.#queue = []
    this.#inFlight = lines.length
    // Records are dropped only when the queue is full, so the line that counts them belongs at its end.
    if (reportedDrops > 0) lines.push(overflowLine(reportedDrops, this.#now()))

    const undelivered = await this.#deliver(lines)
    this.#inFlight = 0
    if (undelivered > 0) {
      // The overflow line was the last one, so it is undelivered too. It is no record and is written again later.
      this.#drop(reportedDrops > 0 ? undelivered - 1 : undelivered)
      return
    }
    this.#unreportedDrops -= reportedDrops
    if (this.#unreportedDrops > 0) this.#scheduleFlush()
  }

  async #writeAfterClose(line: string): Promise<void> {
    if (!(await writeToFallback(this.#fallbackStream, [line]))) this.#drop(1)
  }

  /** Returns how many lines at the end reached neither the file nor the fallback. */
  async #deliver(lines: readonly string[]): Promise<number> {
    if (lines.length === 0) return 0
    const rest = lines.slice(await this.#appendToFile(lines))
    if (rest.length === 0) return 0
    // Waiting for the stream keeps the backlog of a slow reader in our bounded queue.
    return (await writeToFallback(this.#fallbackStream, rest)) ? 0 : rest.length
  }

  async #appendToFile(lines: readonly string[]): Promise<number> {
    if (!this.#file.isOpen) {
      // Absolute difference: a clock that is set back must not delay the retry.
      if (Math.abs(this.#now() - this.#lastFailureAt) < this.#retryAfterMs) return 0
      await this.#openFile()
      if (!this.#file.isOpen) return 0
    }
    const { written, error } = await this.#file.append(lines)
    if (error === null) this.#endOutage()
    else this.#beginOutage(error)
    return written
  }

  async #openFile(): Promise<void> {
    await this.#file.open().catch((error) => this.#beginOutage(error))
  }

  #beginOutage(error: unknown): void {
    this.#lastFailureAt = this.#now()
    if (this.#isOutage) return
    this.#isOutage = true
    this.#logger.warn({ err: error, file: this.#path }, 'audit file not writable, records go to stderr')
  }

  /** Called after a write, not after opening: a file on a full disk can be opened. */
  #endOutage(): void {
    if (!this.#isOutage) return
    this.#isOutage = false
    this.#logger.info({ file: this.#path }, 'audit file writable again')
  }

  #drop(count: number): void {
    if (this.#unreportedDrops === 0) this.#logger.error({ pending: this.pending }, 'audit records dropped')
    this.#dropped += count
    this.#unreportedDrops += count
  }
}

// Distinguishes audit records from other lines on stderr.
const FALLBACK_PREFIX = '[AUDIT] '

/** After this time the records count as lost, so that later records can try the file again. */
const FALLBACK_TIMEOUT_MS = 5000

/** Streams that have not yet accepted earlier records. They get no further ones, which bounds the memory. */
const blockedStreams = new WeakSet<Writable>()

/** Resolves to whether the stream accepted the lines. Never rejects. */
const writeToFallback = (stream: Writable, lines: readonly string[]): Promise<boolean> => {
  // A stream that has failed or ended may never call back.
  if (!stream.writable || blockedStreams.has(stream)) return Promise.resolve(false)
  ignoreErrors(stream)
  const text = lines.map((line) => `${FALLBACK_PREFIX}${line}\n`).join('')
  return new Promise((resolve) => {
    const timeout = setTimeout(() => {
      blockedStreams.add(stream)
      resolve(false)
    }, FALLBACK_TIMEOUT_MS)
    const settle = (isAccepted: boolean): void => {
      clearTimeout(timeout)
      blockedStreams.delete(stream)
      resolve(isAccepted)
    }
    try {
      stream.write(text, (error) => settle(!error))
    } catch {
      // If stderr is a file, it is written synchronously, and an error of the disk may be thrown.
      settle(false)
    }
  })
}

/** Streams that have an error listener of ours. */
const streamsWithListener = new WeakSet<Writable>()

/** Without a listener, a stderr whose reader has closed it would end the process. Write callbacks report the errors. */
const ignoreErrors = (stream: Writable): void => {
  if (streamsWithListener.has(stream)) return
  streamsWithListener.add(stream)
  stream.on('error', () => undefined)
}
