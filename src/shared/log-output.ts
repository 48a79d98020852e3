import { closeSync, constants, fstatSync, openSync, write, writeSync } from 'node:fs'
import { Socket } from 'node:net'
import type { Writable } from 'node:stream'

/** The maximum number of characters buffered for a blocked destination. Further lines are dropped and counted. */
const MAX_BUFFERED = 1024 * 1024
/** Lines are written in batches, because a system call costs more than a line. */
const BATCH_CHARACTERS = 32 * 1024
const BATCH_MS = 50
/** Delay before the next write after a failed one. */
const RETRY_MS = 1000
/** How long `flush` waits for a blocked destination. */
const FLUSH_MS = 1000

/** Receives the bytes that were not written, and the error; null if all were written. */
type Written = (rest: Buffer, error: Error | null) => void

interface LogSink {
  /** Called again only after `done`. */
  write(bytes: Buffer, done: Written): void
  /** For the exit of the process: writes synchronously and does not retry. */
  writeNow(bytes: Buffer): void
  /** Permanent, because a closed pipe is not opened again. */
  readonly isClosed: boolean
}

const NOTHING = Buffer.alloc(0)

/**
 * The buffered log destination. Writing never blocks and never throws: with a full disk or a blocked reader, only log
 * lines are lost. When writing works again, `recovered` is called with the number of dropped lines.
 */
class LogOutput {
  recovered: (dropped: number) => void = () => undefined
  readonly #sink: LogSink
  /** The remainder of a failed write. It is written first, because it may begin inside a line. */
  #rest: Buffer = NOTHING
  #buffered = ''
  #dropped = 0
  /** Bytes of the write in progress. */
  #inFlight = 0
  #timer: NodeJS.Timeout | null = null
  #flushed: (() => void)[] = []

  constructor(sink: LogSink) {
    this.#sink = sink
  }

  /** Accepts complete lines only. */
  write(lines: string): void {
    const buffered = this.#inFlight + this.#rest.length + this.#buffered.length
    if (this.#sink.isClosed || buffered + lines.length > MAX_BUFFERED) {
      this.#dropped += countLines(lines)
      return
    }
    this.#buffered += lines
    if (this.#inFlight > 0) return
    if (this.#buffered.length >= BATCH_CHARACTERS && this.#rest.length === 0) this.#writeBuffered()
    else this.#writeIn(BATCH_MS)
  }

  /** Calls back when all lines are written, or after a failure or timeout. */
  flush(callback: () => void): void {
    const giveUp = setTimeout(() => this.#endFlush(), FLUSH_MS)
    this.#flushed.push(() => {
      clearTimeout(giveUp)
      callback()
    })
    if (this.#inFlight === 0) this.#writeBuffered()
  }

  /** For the exit of the process. */
  writeNow(): void {
    if (this.#inFlight === 0 && !this.#sink.isClosed) this.#sink.writeNow(this.#takeBuffered())
  }

  #writeIn(ms: number): void {
    if (this.#timer !== null) return
    this.#timer = setTimeout(() => {
      this.#timer = null
      if (this.#inFlight === 0) this.#writeBuffered()
    }, ms)
    // Programs flush before they exit, so the timer need not keep the process alive.
    this.#timer.unref()
  }

  #writeBuffered(): void {
    const bytes = this.#takeBuffered()
    if (bytes.length === 0 || this.#sink.isClosed) {
      this.#endFlush()
      return
    }
    this.#inFlight = bytes.length
    this.#sink.write(bytes, (rest, error) => {
      this.#inFlight = 0
      if (error === null) this.#wrote()
      else this.#failed(rest)
    })
  }

  #takeBuffered(): Buffer {
    const bytes = Buffer.concat([this.#rest, Buffer.from(this.#buffered)])
    this.#rest = NOTHING
    this.#buffered = ''
    return bytes
  }

  #wrote(): void {
    if (this.#dropped > 0 && this.#buffered.length < MAX_BUFFERED / 2) this.#report()
    if (this.#flushed.length > 0 || this.#buffered.length >= BATCH_CHARACTERS) this.#writeBuffered()
    else if (this.#buffered !== '') this.#writeIn(BATCH_MS)
  }

  /** Called while the buffer has room, so that the report itself is not dropped. */
  #report(): void {
    const dropped = this.#dropped
    this.#dropped = 0
    this.recovered(dropped)
  }

  #failed(rest: Buffer): void {
    if (this.#sink.isClosed) this.#buffered = ''
    else {
      this.#rest = rest
      this.#writeIn(RETRY_MS)
    }
    this.#endFlush()
  }

  #endFlush(): void {
    const flushed = this.#flushed
    this.#flushed = []
    for (const callback of flushed) callback()
  }
}

const countLines = (text: string): number => text.split('\n').length - 1

/** Files and devices, through the file system. */
class FileSink implements LogSink {
  readonly isClosed = false
  #fd: number

  constructor(fd: number) {
    this.#fd = fd
  }

  /** Continues in another file. The old one is closed after a write in progress, which uses its descriptor. */
  replace(fd: number): void {
    const old = this.#fd
    this.#fd = fd
    setTimeout(() => closeSync(old), CLOSE_AFTER_MS).unref()
  }

  write(bytes: Buffer, done: Written): void {
    write(this.#fd, bytes, (error, written) => {
      if (error !== null) done(bytes, error)
      else if (written < bytes.length) this.write(bytes.subarray(written), done)
      else done(NOTHING, null)
    })
  }

  writeNow(bytes: Buffer): void {
    try {
      writeSync(this.#fd, bytes)
    } catch {
      // Cannot be reported any more.
    }
  }
}

/** Pipes and sockets, through the event loop. */
class StreamSink implements LogSink {
  readonly #stream: Writable
  #hasFailed = false

  constructor(stream: Writable) {
    this.#stream = stream
    // The callback of the write receives the error. Without a listener, a closed pipe would end the process.
    stream.on('error', () => undefined)
  }

  get isClosed(): boolean {
    return this.#hasFailed || !this.#stream.writable
  }

  write(bytes: Buffer, done: Written): void {
    this.#stream.write(bytes, (error) => {
      // A stream is destroyed by its first error.
      if (error) this.#hasFailed = true
      done(NOTHING, error ?? null)
    })
  }

  writeNow(bytes: Buffer): void {
    if (bytes.length > 0) this.#stream.write(bytes)
  }
}

/** More time than a write needs. */
const CLOSE_AFTER_MS = 10_000

const STANDARD_OUTPUT = 1

/**
 * A blocking write to a pipe without an active reader never returns: it would stop the event loop or, in the thread
 * pool, prevent the exit of the process. Pipes, sockets and terminals are therefore written to without blocking.
 */
const standardOutputSink = (): LogSink => {
  const kind = fstatSync(STANDARD_OUTPUT)
  if (kind.isFIFO()) {
    const own = ownDescriptor()
    return new StreamSink(own === null ? process.stdout : new Socket({ fd: own, readable: false, writable: true }))
  }
  if (kind.isSocket()) return new StreamSink(process.stdout)
  // A terminal, or a device such as /dev/null, which never blocks.
  return new FileSink((kind.isCharacterDevice() ? ownDescriptor() : null) ?? STANDARD_OUTPUT)
}

/**
 * A second, non-blocking descriptor of standard output. The inherited one is shared with other processes, such as the
 * shell; they would be affected by O_NONBLOCK and could remove it again.
 */
const ownDescriptor = (): number | null => {
  try {
    return openSync(`/proc/self/fd/${STANDARD_OUTPUT}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
  } catch {
    // There is no /proc, or the pipe belongs to another user, as in some containers.
    return null
  }
}

let shared: LogOutput | null = null

/** The log output of this process: standard output, or the file of `openLogFile`. */
export const logOutput = (): LogOutput => shared ?? share(standardOutputSink())

const share = (sink: LogSink): LogOutput => {
  const output = new LogOutput(sink)
  shared = output
  process.once('exit', () => output.writeNow())
  return output
}

let logFile: { readonly path: string; readonly sink: FileSink } | null = null

/** Writes the log to the end of a file. Must be called before the first logger is created. Throws if it cannot be opened. */
export const openLogFile = (path: string): void => {
  if (shared !== null) throw new Error('the log output is in use')
  const sink = new FileSink(openSync(path, 'a'))
  logFile = { path, sink }
  share(sink)
}

/** Opens the log file again, because log rotation has renamed it. Throws and continues with the old one if that fails. */
export const reopenLogFile = (): void => {
  if (logFile !== null) logFile.sink.replace(openSync(logFile.path, 'a'))
}
