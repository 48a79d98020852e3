import { type FileHandle, mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Writable } from 'node:stream'
import type { Logger } from 'pino'
import type { UserDetails } from '../shared/app-token.js'

const FILE_MODE = 0o640
const FOLDER_MODE = 0o750
const LINE_BREAK = 0x0a

/** What became of one append: how many lines are in the file, and what stopped the rest. */
export interface Appended {
  readonly written: number
  readonly failure: unknown
}

/**
 * A file that only grows by whole lines. Its methods must not overlap: the caller waits for one before the next.
 * After a failure it is closed, and stays so until `open` is called again.
 */
export class AppendFile {
  readonly #path: string
  #handle: FileHandle | undefined
  // The last line in the file has no end: a write of ours, or of a process that died, stopped half-way.
  #torn = false

  constructor(path: string) {
    this.#path = path
  }

  get isOpen(): boolean {
    return this.#handle !== undefined
  }

  /** Opens whatever the path names now, and lets go of what it named before. */
  async open(): Promise<void> {
    await this.close()
    const handle = await openWithFolder(this.#path)
    try {
      this.#torn = await endsInsideLine(handle)
      this.#handle = handle
    } finally {
      if (!this.#handle) await handle.close()
    }
  }

  /** All lines in one write, unless the system takes fewer bytes at a time. Never rejects. */
  async append(lines: readonly string[]): Promise<Appended> {
    const prefix = this.#torn ? '\n' : ''
    const bytes = Buffer.from(`${prefix}${lines.join('\n')}\n`)
    let offset = 0
    try {
      if (!this.#handle) throw new Error('The file is not open')
      while (offset < bytes.length) {
        const { bytesWritten } = await this.#handle.write(bytes, offset, bytes.length - offset, null)
        if (bytesWritten === 0) throw new Error('The file takes no more bytes')
        offset += bytesWritten
      }
      this.#torn = false
      return { written: lines.length, failure: undefined }
    } catch (failure) {
      // The failure that is told is the first one; a second, from closing, says nothing new.
      await this.close().catch(() => undefined)
      return { written: countWhole(lines, offset - prefix.length), failure }
    }
  }

  async close(): Promise<void> {
    const handle = this.#handle
    this.#handle = undefined
    await handle?.close()
  }
}

const openWithFolder = async (path: string): Promise<FileHandle> => {
  try {
    return await open(path, 'a+', FILE_MODE)
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
    await makeFolder(dirname(path))
    return await open(path, 'a+', FILE_MODE)
  }
}

// Not by mkdir's own `recursive`: in Node 20 it never returns where a folder exists but its filesystem refuses a new
// one with ENOENT, as /proc does.
const makeFolder = async (folder: string): Promise<void> => {
  const parent = dirname(folder)
  if (parent === folder) return
  await makeFolder(parent)
  try {
    await mkdir(folder, FOLDER_MODE)
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
  }
}

const codeOf = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : undefined)

const endsInsideLine = async (handle: FileHandle): Promise<boolean> => {
  const stat = await handle.stat()
  if (!stat.isFile() || stat.size === 0) return false
  const { bytesRead, buffer } = await handle.read(Buffer.alloc(1), 0, 1, stat.size - 1)
  return bytesRead === 1 && buffer[0] !== LINE_BREAK
}

// A line that lacks only its line break counts as written: the next open finds it and supplies the break.
const countWhole = (lines: readonly string[], bytesWritten: number): number => {
  let end = 0
  let whole = 0
  for (const line of lines) {
    end += Buffer.byteLength(line)
    if (end > bytesWritten) break
    whole += 1
    end += 1
  }
  return whole
}

/** One refused request. There is no place here for a token, a cookie or a body, so none can reach the file. */
export interface Denial {
  readonly event: 'unauthorized_access' | 'forbidden_access'
  readonly ip: string
  /** The path that was decided on; whatever follows a question mark is left out. */
  readonly resource: string
  readonly method: string
  readonly status: number
  /** A short word such as `token-expired`, never a sentence. */
  readonly reason: string
  /** As a verified token names them: claims of a token that did not verify are nobody's identity. */
  readonly user: UserDetails | null
  readonly requestId: string
  readonly userAgent: string | null | undefined
}

const MAX_RESOURCE_CHARACTERS = 1024
const MAX_EMAIL_CHARACTERS = 254
const MAX_OTHER_CHARACTERS = 256

/** The record as JSON without its line break; `at` is in milliseconds since the epoch. */
export const auditLine = (denial: Denial, at: number): string =>
  oneLine({
    timestamp: new Date(at).toISOString(),
    event: denial.event,
    ip: bounded(denial.ip),
    resource: withoutQuery(bounded(denial.resource, MAX_RESOURCE_CHARACTERS)),
    method: bounded(denial.method),
    result: 'denied',
    status: denial.status,
    reason: bounded(denial.reason),
    user: denial.user && {
      id: bounded(denial.user.id),
      email: bounded(denial.user.email, MAX_EMAIL_CHARACTERS),
      role: bounded(denial.user.role)
    },
    requestId: bounded(denial.requestId),
    userAgent: bounded(denial.userAgent)
  })

/** Stands in the log where `dropped` records could not. */
export const overflowLine = (dropped: number, at: number): string =>
  oneLine({ timestamp: new Date(at).toISOString(), event: 'audit_overflow', dropped })

// JSON.stringify escapes C0 only. DEL, C1 and the two Unicode separators also end a line for some readers, and the
// bidirectional marks make a terminal show a line in another order than it was written.
const UNSAFE_IN_A_LINE = /[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

const oneLine = (record: object): string =>
  JSON.stringify(record).replace(
    UNSAFE_IN_A_LINE,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  )

// With the u flag this finds only surrogates without their partner. They have no UTF-8 form, and a strict reader would
// refuse the whole line because of one.
const LONE_SURROGATES = /\p{Surrogate}/gu

const bounded = (value: string | null | undefined, max = MAX_OTHER_CHARACTERS): string | null => {
  // Values come from requests and token claims: one that is not the text its type promises must not throw here.
  if (typeof value !== 'string') return null
  return cut(value, max).replace(LONE_SURROGATES, '\ufffd')
}

const cut = (value: string, max: number): string => {
  if (value.length <= max) return value
  const splitsPair = isHighSurrogate(value.charCodeAt(max - 1)) && isLowSurrogate(value.charCodeAt(max))
  return value.slice(0, splitsPair ? max - 1 : max)
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff
const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff

// Queries carry secrets. A caller that hands over the raw URL by mistake must not leak them.
const withoutQuery = (path: string | null): string | null => path?.split('?', 1)[0] ?? null

// Tells these lines from whatever else an error console carries.
const MARKER = '[AUDIT] '

/** How long a stream may take before the records count as lost, so that the next ones can try the file again. */
const PATIENCE_MS = 5000

// Streams that have not taken the last lines yet. They get no more, so that no memory is held for a reader that has stopped.
const stuck = new WeakSet<Writable>()

/** Sends audit lines where the file's would have gone; resolves to whether the stream took them. Never rejects. */
export const sendToFallback = (stream: Writable, lines: readonly string[]): Promise<boolean> => {
  // A stream that has failed or ended may swallow a write without ever calling back.
  if (!stream.writable || stuck.has(stream)) return Promise.resolve(false)
  surviveErrors(stream)
  const text = lines.map((line) => `${MARKER}${line}\n`).join('')
  return new Promise((resolve) => {
    const giveUp = setTimeout(() => {
      stuck.add(stream)
      resolve(false)
    }, PATIENCE_MS)
    const settle = (isTaken: boolean): void => {
      clearTimeout(giveUp)
      stuck.delete(stream)
      resolve(isTaken)
    }
    try {
      stream.write(text, (error) => settle(!error))
    } catch {
      // A stderr that is a file is written synchronously, and its full disk may be thrown instead of called back.
      settle(false)
    }
  })
}

// Once per stream and for good, because an error event may come after the log that caused it was closed. Without a
// listener, a stderr whose reader has gone would end the process.
const survivors = new WeakSet<Writable>()

const surviveErrors = (stream: Writable): void => {
  if (survivors.has(stream)) return
  survivors.add(stream)
  stream.on('error', () => undefined)
}

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
