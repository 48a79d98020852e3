import type { Duplex } from 'node:stream'
import type { MaybePromise } from '../core/maybe-promise.js'
import { type FrameReader, FrameSplitter, FrameWriter } from './frames.js'

/**
 * Kinds of messages between the primary and its workers. Both run the same program, so frames have no version. The function that
 * writes a kind and the handler that reads it must have the same fields in the same order; the compiler does not compare them.
 */
const MESSAGE_KINDS = [
  'reply',
  'error',
  // worker to primary: channels
  'subscribe',
  'unsubscribe',
  'publish',
  'publishToMany',
  'publishJoinOrLeave',
  'readHistory',
  'removeHistory',
  'addPresence',
  'removePresence',
  'readPresence',
  'countPresence',
  'writeMap',
  'removeMapKey',
  'readMapState',
  'readMapKey',
  'readMapStream',
  'countMapKeys',
  'clearMap',
  'expireMapKeys',
  // primary to worker: subscribed channels
  'publication',
  'joinOrLeave',
  // worker to primary: cluster, connections, channel states, metrics
  'joinCluster',
  'survey',
  'applyCommand',
  'surveyNode',
  'hasNode',
  'acquireConnection',
  'countConnection',
  'releaseConnection',
  'addUserConnection',
  'takeUserRates',
  'removeUserConnection',
  'takeStateEvents',
  'countStateEvents',
  'confirmStateEvents',
  'releaseStateEvents',
  'readMetrics',
  // primary to worker: cluster, channel states, metrics
  'clusterSize',
  'handleSurvey',
  'stateEventsDue',
  'readWorkerMetrics',
  // life of the worker process
  'start',
  'ready',
  'serving',
  'startFailed',
  'configure',
  'connectionAccepted',
  'connectionReturned',
  'draining',
  'ping',
  'shutdownAnnounced',
  'stop'
] as const

export type MessageKind = (typeof MESSAGE_KINDS)[number]

const KIND_NUMBERS: ReadonlyMap<MessageKind, number> = new Map(MESSAGE_KINDS.map((kind, index) => [kind, index]))

/** The number of a kind in a frame. */
export const kindNumber = (kind: MessageKind): number => KIND_NUMBERS.get(kind) ?? 0

/** Id of a message without a reply. */
export const NO_REPLY = 0

export type Write = (out: FrameWriter) => void
export type MessageHandler = (fields: FrameReader) => void
/**
 * Reads the fields synchronously; the reply may come later. An error that is thrown at once closes the IPC connection, so only fields
 * that cannot be read may throw.
 */
export type RequestHandler = (fields: FrameReader) => MaybePromise<Write>

/** A reply without fields. */
export const NO_FIELDS: Write = () => undefined

interface PendingRequest {
  readonly resolve: (fields: FrameReader) => void
  readonly reject: (error: Error) => void
}

/** The connection is closed if the other process is this far behind: it has stopped reading. */
const MAX_UNSENT_BYTES = 512 * 1024 * 1024

/** `drained` waits while more than this is unsent. */
const HIGH_WATER_BYTES = 16 * 1024 * 1024

export class IpcClosed extends Error {
  override readonly name = 'IpcClosed'
}

/**
 * One end of the socket pair between the primary and a worker. Messages arrive in the order in which they were sent, and all
 * messages of an event loop turn leave in one write.
 */
export class IpcConnection {
  /** Resolves when the connection is closed. */
  readonly closed: Promise<void>
  readonly #stream: Duplex
  readonly #out = new FrameWriter()
  readonly #pending = new Map<number, PendingRequest>()
  readonly #messageHandlers: Partial<Record<MessageKind, MessageHandler>> = {}
  readonly #requestHandlers: Partial<Record<MessageKind, RequestHandler>> = {}
  #lastId = NO_REPLY
  #isClosed = false
  readonly #flush = (): void => {
    if (this.#isClosed || this.#out.length === 0) return
    this.#stream.write(this.#out.take())
    if (this.#stream.writableLength > MAX_UNSENT_BYTES) this.#stream.destroy()
  }

  /** `malformedFrame` is called before the connection is closed because of a frame that cannot be read. */
  constructor(stream: Duplex, malformedFrame: (error: unknown) => void) {
    this.#stream = stream
    const frames = new FrameSplitter((frame) => this.#receive(frame))
    stream.on('data', (chunk: Buffer) => {
      try {
        frames.receive(chunk)
      } catch (error) {
        malformedFrame(error)
        // The start of the next frame is unknown.
        stream.destroy()
      }
    })
    stream.on('error', () => undefined)
    stream.on('end', () => stream.destroy())
    this.closed = new Promise((resolve) => {
      stream.once('close', () => {
        this.#close()
        resolve()
      })
    })
  }

  onMessage(handlers: Partial<Record<MessageKind, MessageHandler>>): void {
    Object.assign(this.#messageHandlers, handlers)
  }

  onRequest(handlers: Partial<Record<MessageKind, RequestHandler>>): void {
    Object.assign(this.#requestHandlers, handlers)
  }

  /** Sends a message without a reply. */
  send(kind: MessageKind, write: Write = NO_FIELDS): void {
    this.#write(kind, NO_REPLY, write)
  }

  /** Sends a complete frame, which may be shared with other connections. */
  sendFrame(frame: Buffer): void {
    if (this.#isClosed) return
    this.#schedule()
    this.#out.append(frame)
  }

  request<T>(kind: MessageKind, write: Write, read: (fields: FrameReader) => T): Promise<T> {
    if (this.#isClosed) return Promise.reject(closedError())
    this.#lastId = this.#lastId === 0xffffffff ? 1 : this.#lastId + 1
    const id = this.#lastId
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve: (fields) => resolve(read(fields)), reject })
      this.#write(kind, id, write)
    })
  }

  /** Resolves when the other process has read most of the data, or has ended. */
  async drained(): Promise<void> {
    if (this.#stream.writableLength < HIGH_WATER_BYTES) return
    const drained = new Promise<void>((resolve) => this.#stream.once('drain', resolve))
    await Promise.race([drained, this.closed])
  }

  /** Closes the connection after all earlier messages. */
  end(): void {
    this.#flush()
    this.#stream.end()
  }

  #write(kind: MessageKind, id: number, write: Write): void {
    if (this.#isClosed) return
    this.#schedule()
    this.#out.begin(kindNumber(kind), id)
    write(this.#out)
    this.#out.finish()
  }

  #schedule(): void {
    if (this.#out.length === 0) setImmediate(this.#flush)
  }

  #receive(frame: FrameReader): void {
    const kind = MESSAGE_KINDS[frame.byte()]
    const id = frame.uint32()
    if (kind === 'reply' || kind === 'error') {
      const request = this.#pending.get(id)
      if (kind === 'reply') request?.resolve(frame)
      else request?.reject(new Error(frame.text()))
      // Last: a request whose reply cannot be read stays pending and is rejected when the connection closes.
      this.#pending.delete(id)
      return
    }
    if (id !== NO_REPLY) {
      this.#handleRequest(kind, id, frame)
      return
    }
    const handler = kind && this.#messageHandlers[kind]
    if (handler === undefined) throw new RangeError(`no handler for IPC message ${kind}`)
    handler(frame)
  }

  #handleRequest(kind: MessageKind | undefined, id: number, frame: FrameReader): void {
    const handler = kind && this.#requestHandlers[kind]
    // A process that has just started may not have all its handlers yet.
    const write =
      handler === undefined ? Promise.reject(new Error(`no handler for IPC request ${kind}`)) : handler(frame)
    if (!(write instanceof Promise)) {
      this.#write('reply', id, write)
      return
    }
    write.then(
      (later) => this.#write('reply', id, later),
      (error) => this.#write('error', id, (out) => out.text(String(error)))
    )
  }

  #close(): void {
    this.#isClosed = true
    const pending = [...this.#pending.values()]
    this.#pending.clear()
    for (const { reject } of pending) reject(closedError())
  }
}

const closedError = (): IpcClosed => new IpcClosed('the other process has ended')
