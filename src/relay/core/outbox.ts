import type { Framing } from './framing.js'

/** The way to one client, as an edge provides it. */
export interface Sink {
  readonly framing: Framing
  readonly transport: 'websocket' | 'http_stream' | 'sse'
  /** Takes whole messages. Never throws; that a client has gone is told to the connection. */
  write(bytes: Buffer): void
  /** What was written and the network has not taken yet. */
  readonly unsentBytes: number
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
  readonly #reader: Reader
  #isShut = false

  constructor(sink: Sink, reader: Reader, maxBytes: number) {
    this.sink = sink
    this.#reader = reader
    this.maxBytes = maxBytes
  }

  send(bytes: Buffer): void {
    if (this.#isShut) return
    const { sink } = this
    if (!this.isBehind) {
      sink.write(bytes)
      if (sink.unsentBytes > 0) this.#fallBehind()
    } else if (sink.unsentBytes + bytes.length > this.maxBytes) this.overflow()
    else sink.write(bytes)
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
      if (this.sink.unsentBytes > 0) {
        this.#fallBehind()
        return
      }
      this.isBehind = false
      if (!this.#isShut) this.#reader.caughtUp()
    })
  }
}
