import type { Framing } from './framing.js'

/** Where bytes go; a TCP socket is one. */
export interface ByteStream {
  /** Takes whole messages. Never throws; that a client has gone is told to the connection. */
  write(bytes: Buffer): unknown
  /** Bytes that were written and the network has not taken yet. */
  readonly writableLength: number
}

/** The way to one client, as an edge provides it. */
export interface Transport {
  readonly framing: Framing
  readonly name: 'websocket' | 'http_stream' | 'sse'
  readonly stream: ByteStream
  /** Calls back once, when all that was written before is gone. */
  onceDrained(then: () => void): void
}

export interface Reader {
  /** It took everything; what waited for that may go out. */
  caughtUp(): void
  /** It is further behind than anybody may be. Called in the middle of a fan-out: nothing may be torn down in it. */
  tooSlow(): void
  /**
   * Sending to this client failed for a reason nobody expected; one that hits many at once is reported for all of them
   * together. Also called in the middle of a fan-out.
   */
  sendFailed(error: unknown, isReported: boolean): void
}

/** What leaves the queue in one write. */
const MAX_WRITE_BYTES = 64 * 1024

/**
 * What is on its way to one client. A client is behind while the network has not taken all that was written to it. From
 * then on messages wait in a queue here, where they can still be dropped, and one with more than `maxBytes` waiting is
 * too slow.
 */
export class Outbox {
  readonly transport: Transport
  /** The operator may change it at any time. */
  maxBytes: number
  isBehind = false
  /** What the present flush has for this client. */
  gathered: Buffer | Buffer[] | null = null
  /** The sink's. In a fan-out to thousands each object on the way to a socket is one more that the cache has forgotten. */
  readonly #stream: ByteStream
  readonly #reader: Reader
  #queue: Buffer[] | null = null
  #queuedBytes = 0
  #drains = 0
  #isShut = false

  constructor(transport: Transport, reader: Reader, maxBytes: number) {
    this.transport = transport
    this.#stream = transport.stream
    this.#reader = reader
    this.maxBytes = maxBytes
  }

  send(bytes: Buffer): void {
    if (this.#isShut) return
    if (this.isBehind) {
      this.#enqueue(bytes)
      return
    }
    const stream = this.#stream
    stream.write(bytes)
    if (stream.writableLength > 0) this.#fallBehind()
  }

  get unsentBytes(): number {
    return this.#stream.writableLength + this.#queuedBytes
  }

  /** How often the network has taken all that was written to it; shows whether a client that is behind reads at all. */
  get drains(): number {
    return this.#drains
  }

  /** More waits for this client than it may leave waiting. */
  overflow(): void {
    if (this.#isShut) return
    this.shut()
    this.#reader.tooSlow()
  }

  fail(error: unknown, isReported = false): void {
    if (this.#isShut) return
    this.shut()
    this.#reader.sendFailed(error, isReported)
  }

  /** Hands all that waits to the network, for a connection that is about to be closed. */
  flush(): void {
    while (this.#queue !== null) this.#stream.write(this.#takeChunk(this.#queue))
  }

  /** Nothing leaves any more, and what waits is dropped. */
  shut(): void {
    this.#isShut = true
    this.#queue = null
    this.#queuedBytes = 0
  }

  #enqueue(bytes: Buffer): void {
    if (this.unsentBytes + bytes.length > this.maxBytes) {
      this.overflow()
      return
    }
    this.#queuedBytes += bytes.length
    if (this.#queue === null) this.#queue = [bytes]
    else this.#queue.push(bytes)
  }

  #fallBehind(): void {
    this.isBehind = true
    this.transport.onceDrained(() => {
      try {
        this.#drained()
      } catch (error) {
        this.fail(error)
      }
    })
  }

  #drained(): void {
    this.#drains += 1
    const stream = this.#stream
    while (stream.writableLength === 0 && this.#queue !== null) stream.write(this.#takeChunk(this.#queue))
    if (stream.writableLength > 0) {
      this.#fallBehind()
      return
    }
    this.isBehind = false
    if (!this.#isShut) this.#reader.caughtUp()
  }

  /** The first messages of the queue, as many as fit into one write. */
  #takeChunk(queue: Buffer[]): Buffer {
    let count = 1
    let bytes = (queue[0] as Buffer).length
    while (count < queue.length && bytes + (queue[count] as Buffer).length <= MAX_WRITE_BYTES) {
      bytes += (queue[count] as Buffer).length
      count += 1
    }
    const taken = queue.splice(0, count)
    if (queue.length === 0) this.#queue = null
    this.#queuedBytes -= bytes
    return taken.length === 1 ? (taken[0] as Buffer) : Buffer.concat(taken, bytes)
  }
}
