import type { Framing } from './framing.js'

/** Where bytes go; a TCP socket is one. */
export interface Wire {
  /** Takes whole messages. Never throws; that a client has gone is told to the connection. */
  write(bytes: Buffer): unknown
  /** Bytes that were written and the network has not taken yet. */
  readonly writableLength: number
}

/** The way to one client, as an edge provides it. */
export interface Sink {
  readonly framing: Framing
  readonly transport: 'websocket' | 'http_stream' | 'sse'
  readonly wire: Wire
  /** Calls back once, when all that was written before is gone. */
  whenDrained(then: () => void): void
}

export interface Reader {
  /** It took everything; what waited for that may go out. */
  caughtUp(): void
  /** It is further behind than anybody may be. Called in the middle of a fan-out: nothing may be torn down in it. */
  tooSlow(): void
}

/**
 * What is on its way to one client. The network's own buffer comes first: a client that leaves something behind there is
 * behind, and one that leaves more than `maxBytes` is too slow.
 */
export class Outbox {
  readonly sink: Sink
  readonly maxBytes: number
  isBehind = false
  /** What the present flush has for this client. */
  gathered: Buffer | Buffer[] | null = null
  /** The sink's. In a fan-out to thousands each object on the way to a socket is one more that the cache has forgotten. */
  readonly #wire: Wire
  readonly #reader: Reader
  #isShut = false

  constructor(sink: Sink, reader: Reader, maxBytes: number) {
    this.sink = sink
    this.#wire = sink.wire
    this.#reader = reader
    this.maxBytes = maxBytes
  }

  send(bytes: Buffer): void {
    if (this.#isShut) return
    const wire = this.#wire
    if (!this.isBehind) {
      wire.write(bytes)
      if (wire.writableLength > 0) this.#fallBehind()
    } else if (wire.writableLength + bytes.length > this.maxBytes) this.overflow()
    else wire.write(bytes)
  }

  get unsentBytes(): number {
    return this.#wire.writableLength
  }

  /** More waits for this client than it may leave waiting. */
  overflow(): void {
    if (this.#isShut) return
    this.#isShut = true
    this.#reader.tooSlow()
  }

  /** Nothing leaves any more. */
  shut(): void {
    this.#isShut = true
  }

  #fallBehind(): void {
    this.isBehind = true
    this.sink.whenDrained(() => {
      if (this.unsentBytes > 0) {
        this.#fallBehind()
        return
      }
      this.isBehind = false
      if (!this.#isShut) this.#reader.caughtUp()
    })
  }
}
