import { constants, fstatSync, openSync, write, writeSync } from 'node:fs'
import { Socket } from 'node:net'
import type { Writable } from 'node:stream'

/** How many characters may wait for a destination that takes nothing. Further lines are dropped and counted. */
const MAX_WAITING = 1024 * 1024
/** One write for many lines: a system call for each would cost more than the line. */
const BATCH_CHARACTERS = 32 * 1024
const BATCH_MS = 50
/** How long a destination that failed is left alone. */
const RETRY_MS = 1000
/** How long the end of the program waits for a destination that takes nothing. */
const FLUSH_MS = 1000

/** Gets what is left of the bytes, and why; null where all of them are written. */
type Written = (rest: Buffer, error: Error | null) => void

interface LogSink {
  /** Called for one piece at a time. */
  write(bytes: Buffer, done: Written): void
  /** At the end of the process: writes what can be written at once, without waiting. */
  writeNow(bytes: Buffer): void
  /** A reader that has gone does not come back. */
  readonly isClosed: boolean
}

const NOTHING = Buffer.alloc(0)

/**
 * Where log lines go. Writing never blocks and never throws: a full disk or a reader that has stopped reading costs log
 * lines, and nothing else. When the destination takes lines again, `recovered` is called with the number of lost ones.
 */
export class LogOutput {
  recovered: (dropped: number) => void = () => undefined
  readonly #sink: LogSink
  /** Left over from a write that failed. It comes first, because it may begin inside a line. */
  #rest: Buffer = NOTHING
  #waiting = ''
  #dropped = 0
  /** How much the destination has been given and has not taken yet. */
  #inFlight = 0
  #timer: NodeJS.Timeout | null = null
  #flushed: (() => void)[] = []

  constructor(sink: LogSink) {
    this.#sink = sink
  }

  /** Whole lines. */
  write(lines: string): void {
    const waiting = this.#inFlight + this.#rest.length + this.#waiting.length
    if (this.#sink.isClosed || waiting + lines.length > MAX_WAITING) {
      this.#dropped += countLines(lines)
      return
    }
    this.#waiting += lines
    if (this.#inFlight > 0) return
    if (this.#waiting.length >= BATCH_CHARACTERS && this.#rest.length === 0) this.#writeWaiting()
    else this.#writeIn(BATCH_MS)
  }

  /** Calls back when all lines are written, or when waiting longer would be in vain. */
  flush(callback: () => void): void {
    const giveUp = setTimeout(() => this.#endFlush(), FLUSH_MS)
    this.#flushed.push(() => {
      clearTimeout(giveUp)
      callback()
    })
    if (this.#inFlight === 0) this.#writeWaiting()
  }

  /** For the end of the process, after which nothing is written any more. */
  writeNow(): void {
    if (this.#inFlight === 0 && !this.#sink.isClosed) this.#sink.writeNow(this.#takeWaiting())
  }

  #writeIn(ms: number): void {
    if (this.#timer !== null) return
    this.#timer = setTimeout(() => {
      this.#timer = null
      if (this.#inFlight === 0) this.#writeWaiting()
    }, ms)
    // A line that waits keeps no program alive: programs flush before they end.
    this.#timer.unref()
  }

  #writeWaiting(): void {
    const bytes = this.#takeWaiting()
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

  #takeWaiting(): Buffer {
    const bytes = Buffer.concat([this.#rest, Buffer.from(this.#waiting)])
    this.#rest = NOTHING
    this.#waiting = ''
    return bytes
  }

  #wrote(): void {
    if (this.#dropped > 0 && this.#waiting.length < MAX_WAITING / 2) this.#report()
    if (this.#flushed.length > 0 || this.#waiting.length >= BATCH_CHARACTERS) this.#writeWaiting()
    else if (this.#waiting !== '') this.#writeIn(BATCH_MS)
  }

  /** Called while there is room, so that the line that reports the loss is not lost itself. */
  #report(): void {
    const dropped = this.#dropped
    this.#dropped = 0
    this.recovered(dropped)
  }

  #failed(rest: Buffer): void {
    if (this.#sink.isClosed) this.#waiting = ''
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
  readonly #fd: number

  constructor(fd: number) {
    this.#fd = fd
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
      // The disk is full, and the process has ended.
    }
  }
}

/** Pipes and sockets, through the event loop. */
class StreamSink implements LogSink {
  readonly #stream: Writable
  #hasFailed = false

  constructor(stream: Writable) {
    this.#stream = stream
    // The callback of the write reports it. Without a listener a reader that has gone would end the process.
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

const STANDARD_OUTPUT = 1

/**
 * A blocking write to a pipe that nobody reads never returns. In the event loop it would stop the program, and in Node's
 * thread pool it would keep the process from ending. So pipes, sockets and terminals are written to without blocking.
 */
const standardOutputSink = (): LogSink => {
  const kind = fstatSync(STANDARD_OUTPUT)
  if (kind.isFIFO()) {
    const own = ownDescriptor()
    return new StreamSink(own === null ? process.stdout : new Socket({ fd: own, readable: false, writable: true }))
  }
  if (kind.isSocket()) return new StreamSink(process.stdout)
  // A device is a terminal, or /dev/null and its like, which never block.
  return new FileSink((kind.isCharacterDevice() ? ownDescriptor() : null) ?? STANDARD_OUTPUT)
}

/**
 * Standard output opened once more, without blocking. The inherited descriptor is shared with other processes, such as a
 * shell or a parent. Making that one non-blocking would surprise them, and any of them could make it block again.
 */
const ownDescriptor = (): number | null => {
  try {
    return openSync(`/proc/self/fd/${STANDARD_OUTPUT}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
  } catch {
    // No /proc, or the pipe belongs to another user, as in some containers.
    return null
  }
}

let shared: LogOutput | null = null

/** The one output of this process. */
export const standardOutput = (): LogOutput => {
  if (shared !== null) return shared
  const output = new LogOutput(standardOutputSink())
  shared = output
  process.once('exit', () => output.writeNow())
  return output
}
