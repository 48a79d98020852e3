import type { Duplex } from 'node:stream'
import type { MaybePromise } from '../core/broker.js'

/** Length, kind and number of a frame come before its fields. */
export const HEAD_BYTES = 9
const LENGTH_BYTES = 4
const FIRST_BYTES = 64 * 1024
/** A burst must not be paid for in memory for ever. */
const KEPT_BYTES = 4 * 1024 * 1024

/**
 * Writes frames one behind the other into one buffer, which is used again and again: what one turn of the event loop
 * says leaves in one write.
 */
export class FrameWriter {
  #bytes = Buffer.allocUnsafeSlow(FIRST_BYTES)
  #start = 0
  #end = 0

  get length(): number {
    return this.#end
  }

  begin(kind: number, id: number): this {
    this.#reserve(HEAD_BYTES)
    this.#start = this.#end
    this.#bytes[this.#start + LENGTH_BYTES] = kind
    this.#bytes.writeUInt32LE(id, this.#start + LENGTH_BYTES + 1)
    this.#end += HEAD_BYTES
    return this
  }

  finish(): void {
    this.#bytes.writeUInt32LE(this.#end - this.#start - LENGTH_BYTES, this.#start)
  }

  byte(value: number): this {
    this.#reserve(1)
    this.#bytes[this.#end++] = value
    return this
  }

  number(value: number): this {
    this.#reserve(8)
    this.#end = this.#bytes.writeDoubleLE(value, this.#end)
    return this
  }

  text(value: string): this {
    // Three bytes at most for each of JavaScript's characters.
    this.#reserve(LENGTH_BYTES + value.length * 3)
    const length = this.#bytes.write(value, this.#end + LENGTH_BYTES)
    this.#bytes.writeUInt32LE(length, this.#end)
    this.#end += LENGTH_BYTES + length
    return this
  }

  textOrNull(value: string | null): this {
    return value === null ? this.byte(0) : this.byte(1).text(value)
  }

  /** A frame that was written elsewhere. */
  append(frame: Buffer): void {
    this.#reserve(frame.length)
    frame.copy(this.#bytes, this.#end)
    this.#end += frame.length
  }

  /** All that was written, and from here on nothing. */
  take(): Buffer {
    const taken = Buffer.allocUnsafe(this.#end)
    this.#bytes.copy(taken, 0, 0, this.#end)
    this.#end = 0
    if (this.#bytes.length > KEPT_BYTES) this.#bytes = Buffer.allocUnsafeSlow(FIRST_BYTES)
    return taken
  }

  #reserve(more: number): void {
    const needed = this.#end + more
    if (needed <= this.#bytes.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#bytes.length * 2))
    this.#bytes.copy(larger, 0, 0, this.#end)
    this.#bytes = larger
  }
}

/** Reads the fields of one frame in the order in which they were written. Throws where there are not so many. */
export class FrameReader {
  readonly #bytes: Buffer
  readonly #end: number
  #at: number

  constructor(bytes: Buffer, start: number, end: number) {
    this.#bytes = bytes
    this.#at = start
    this.#end = end
  }

  byte(): number {
    return this.#bytes[this.#take(1)] as number
  }

  whole(): number {
    return this.#bytes.readUInt32LE(this.#take(4))
  }

  number(): number {
    return this.#bytes.readDoubleLE(this.#take(8))
  }

  text(): string {
    const length = this.whole()
    const start = this.#take(length)
    return this.#bytes.toString('utf8', start, start + length)
  }

  textOrNull(): string | null {
    return this.byte() === 0 ? null : this.text()
  }

  #take(length: number): number {
    const start = this.#at
    if (start + length > this.#end) throw new RangeError('a frame ends too early')
    this.#at = start + length
    return start
  }
}

/** Larger than anything that a relay takes in. */
const MAX_FRAME_BYTES = 1024 * 1024 * 1024

/** Finds the frames in a stream of bytes, however it is cut into pieces. */
export class FrameSplitter {
  readonly #frame: (frame: FrameReader) => void
  #pieces: Buffer[] = []
  #length = 0
  /** With fewer bytes there is no whole frame. */
  #needed = LENGTH_BYTES

  constructor(frame: (frame: FrameReader) => void) {
    this.#frame = frame
  }

  receive(piece: Buffer): void {
    this.#pieces.push(piece)
    this.#length += piece.length
    // A long frame is put together once, not with each of its pieces.
    if (this.#length < this.#needed) return
    const bytes = this.#pieces.length === 1 ? piece : Buffer.concat(this.#pieces, this.#length)
    const rest = bytes.subarray(this.#split(bytes))
    this.#pieces = rest.length === 0 ? [] : [rest]
    this.#length = rest.length
  }

  #split(bytes: Buffer): number {
    let at = 0
    while (bytes.length - at >= LENGTH_BYTES) {
      const start = at + LENGTH_BYTES
      const length = bytes.readUInt32LE(at)
      if (length > MAX_FRAME_BYTES) throw new RangeError('a frame is too long')
      if (start + length > bytes.length) {
        this.#needed = LENGTH_BYTES + length
        return at
      }
      this.#frame(new FrameReader(bytes, start, start + length))
      at = start + length
    }
    this.#needed = LENGTH_BYTES
    return at
  }
}

/** What the processes of a relay say to each other. Both are the same program, so there is no version to agree on. */
export const MESSAGE_KINDS = [
  'answer',
  'failure',
  // from a worker, about channels
  'subscribe',
  'unsubscribe',
  'publish',
  'publishToMany',
  'announce',
  'readHistory',
  'removeHistory',
  'addPresence',
  'removePresence',
  'readPresence',
  'countPresence',
  // to a worker, about channels that it has subscribed to
  'publication',
  'joinOrLeave',
  // from a worker, about all of them
  'joinFleet',
  'askFleet',
  'applyCommand',
  'askNode',
  'enter',
  'entered',
  'leave',
  'addUserConnection',
  'removeUserConnection',
  'readMetrics',
  // to a worker
  'fleetSize',
  'question',
  'ownMetrics',
  // about the process itself
  'begin',
  'listening',
  'failed',
  'configure',
  'ping',
  'stop'
] as const

export type MessageKind = (typeof MESSAGE_KINDS)[number]

/** The number that stands for a kind in a frame. */
export const KIND_NUMBERS = Object.fromEntries(MESSAGE_KINDS.map((kind, index) => [kind, index])) as Readonly<
  Record<MessageKind, number>
>

const NOBODY_WAITS = 0

export type Write = (out: FrameWriter) => void
/** Takes note of what was said. */
export type MessageHandler = (fields: FrameReader) => void
/** Reads what was asked at once, and may answer later. */
export type RequestHandler = (fields: FrameReader) => MaybePromise<Write>

/** The answer that says nothing but that it is done. */
export const done: Write = () => undefined

interface Waiting {
  readonly read: (fields: FrameReader) => void
  readonly fail: (error: Error) => void
}

/** How far the other side may fall behind: it is on this machine, so whoever is so far behind reads nothing any more. */
const MAX_UNSENT_BYTES = 512 * 1024 * 1024

/** Whoever has much to say waits, where the other side has not taken so much yet. */
const FAR_BEHIND_BYTES = 16 * 1024 * 1024

export class IpcClosed extends Error {
  override readonly name = 'IpcClosed'
}

/**
 * One end of the stream between two processes of a relay. What is said arrives in the order in which it was said, and what is
 * said in one turn of the event loop leaves in one write.
 */
export class IpcChannel {
  /** Settles when nothing can be said or heard any more. */
  readonly closed: Promise<void>
  readonly #stream: Duplex
  readonly #out = new FrameWriter()
  readonly #waiting = new Map<number, Waiting>()
  readonly #listeners: Partial<Record<MessageKind, MessageHandler>> = {}
  readonly #answerers: Partial<Record<MessageKind, RequestHandler>> = {}
  #lastId = NOBODY_WAITS
  #isBroken = false
  readonly #flush = (): void => {
    if (this.#isBroken || this.#out.length === 0) return
    this.#stream.write(this.#out.take())
    if (this.#stream.writableLength > MAX_UNSENT_BYTES) this.#stream.destroy()
  }

  /** `fault` hears of what no other process of this program would say. */
  constructor(stream: Duplex, fault: (error: unknown) => void) {
    this.#stream = stream
    const frames = new FrameSplitter((frame) => this.#receive(frame))
    stream.on('data', (piece: Buffer) => {
      try {
        frames.receive(piece)
      } catch (error) {
        fault(error)
        // After a frame that cannot be read none is where it should be.
        stream.destroy()
      }
    })
    stream.on('error', () => undefined)
    // The other process has ended.
    stream.on('end', () => stream.destroy())
    this.closed = new Promise((resolve) => {
      stream.once('close', () => {
        this.#break()
        resolve()
      })
    })
  }

  /** What the other side may say. */
  onMessage(listeners: Partial<Record<MessageKind, MessageHandler>>): void {
    Object.assign(this.#listeners, listeners)
  }

  /** What the other side may ask. */
  onRequest(answerers: Partial<Record<MessageKind, RequestHandler>>): void {
    Object.assign(this.#answerers, answerers)
  }

  /** Says something that is not answered. */
  send(kind: MessageKind, write: Write): void {
    this.#write(kind, NOBODY_WAITS, write)
  }

  /** A whole frame that may go to others too. */
  forward(frame: Buffer): void {
    if (this.#isBroken) return
    this.#schedule()
    this.#out.append(frame)
  }

  request<T>(kind: MessageKind, write: Write, read: (fields: FrameReader) => T): Promise<T> {
    if (this.#isBroken) return Promise.reject(new IpcClosed('the other process is gone'))
    this.#lastId = this.#lastId === 0xffffffff ? 1 : this.#lastId + 1
    const id = this.#lastId
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { read: (fields) => resolve(read(fields)), fail: reject })
      this.#write(kind, id, write)
    })
  }

  /** Settles when the other side is not far behind any more, or is gone. */
  async caughtUp(): Promise<void> {
    if (this.#stream.writableLength < FAR_BEHIND_BYTES) return
    const drained = new Promise<void>((resolve) => this.#stream.once('drain', resolve))
    await Promise.race([drained, this.closed])
  }

  /** What was said before still goes out. */
  end(): void {
    this.#flush()
    this.#stream.end()
  }

  #write(kind: MessageKind, id: number, write: Write): void {
    if (this.#isBroken) return
    this.#schedule()
    this.#out.begin(KIND_NUMBERS[kind], id)
    write(this.#out)
    this.#out.finish()
  }

  #schedule(): void {
    if (this.#out.length === 0) setImmediate(this.#flush)
  }

  #receive(frame: FrameReader): void {
    const kind = MESSAGE_KINDS[frame.byte()]
    const id = frame.whole()
    if (kind === 'answer' || kind === 'failure') {
      const waiting = this.#waiting.get(id)
      this.#waiting.delete(id)
      if (kind === 'answer') waiting?.read(frame)
      else waiting?.fail(new Error(frame.text()))
      return
    }
    if (id !== NOBODY_WAITS) {
      this.#answer(kind, id, frame)
      return
    }
    const listener = kind && this.#listeners[kind]
    if (listener === undefined) throw new RangeError(`nobody listens to ${kind}`)
    listener(frame)
  }

  #answer(kind: MessageKind | undefined, id: number, frame: FrameReader): void {
    const answerer = kind && this.#answerers[kind]
    // A process that has just been started may not know yet.
    const write = answerer === undefined ? Promise.reject(new Error(`no answer to ${kind}`)) : answerer(frame)
    if (!(write instanceof Promise)) {
      this.#write('answer', id, write)
      return
    }
    write.then(
      (later) => this.#write('answer', id, later),
      (error) => this.#write('failure', id, (out) => out.text(String(error)))
    )
  }

  #break(): void {
    this.#isBroken = true
    const waiting = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const { fail } of waiting) fail(new IpcClosed('the other process is gone'))
  }
}
