import type { MessageParts } from '../codec/codec.js'
import { encodedBytes } from '../codec/message-parts.js'
import type { ByteStream, Transport } from '../codec/transport.js'

/** The client that an outbox belongs to. */
export interface OutboxOwner {
  /** The network accepted everything that was written; delayed work can continue. */
  caughtUp(): void
  /** The client exceeds its queue limit. Called in the middle of a fan-out, so nothing may be torn down synchronously. */
  tooSlow(): void
  /**
   * Sending failed unexpectedly. `isReported` is true if the error affects many clients and was already logged. Called in
   * the middle of a fan-out, so nothing may be torn down synchronously.
   */
  sendFailed(error: unknown, isReported: boolean): void
}

/** Limit for one write from the queue. */
const MAX_WRITE_BYTES = 64 * 1024

/**
 * Outgoing frames of one client. A client is behind while the network has not accepted everything that was written. New
 * frames then wait in a queue, and a client with more than `maxBytes` waiting is too slow.
 */
export class Outbox {
  readonly transport: Transport
  /** Updated when the configuration is reloaded. */
  maxBytes: number
  isBehind = false
  /** Number of subscriptions with a backlog, which is sent before later publications of its channel. */
  backlogs = 0
  /** Frames that the running flush collected for this client. */
  gathered: Buffer | Buffer[] | null = null
  /** Copied from the transport: in a fan-out to thousands of clients, each further object is a cache miss. */
  readonly #stream: ByteStream
  readonly #owner: OutboxOwner
  #queue: Buffer[] | null = null
  #queuedBytes = 0
  /** Unsent bytes that the limit does not apply to. */
  #exemptBytes = 0
  #drainCount = 0
  #isClosed = false

  constructor(transport: Transport, owner: OutboxOwner, maxBytes: number) {
    this.transport = transport
    this.#stream = transport.stream
    this.#owner = owner
    this.maxBytes = maxBytes
  }

  send(bytes: Buffer): void {
    if (this.#isClosed) return
    if (this.isBehind) {
      this.#enqueue(bytes)
      return
    }
    const stream = this.#stream
    stream.write(bytes)
    if (stream.writableLength > 0) this.#fallBehind()
  }

  /** Sends the parts of one frame. */
  sendParts(parts: MessageParts): void {
    const [first] = parts
    if (this.#isClosed || first === undefined) return
    // A frame that has to wait is queued whole, because the transport may send frames of its own meanwhile.
    if (this.isBehind || parts.length === 1) {
      this.send(parts.length === 1 ? first : Buffer.concat(parts))
      return
    }
    const stream = this.#stream
    stream.cork()
    for (const part of parts) stream.write(part)
    stream.uncork()
    if (stream.writableLength > 0) this.#fallBehind()
  }

  /** Sends the parts of a frame that may be larger than the limit: it does not count while it waits. */
  sendExempt(parts: MessageParts): void {
    const bytes = encodedBytes(parts)
    if (this.isBehind) this.#exemptBytes += bytes
    this.sendParts(parts)
    // The network did not accept all of it.
    if (this.isBehind && this.#exemptBytes === 0) this.#exemptBytes = bytes
  }

  get unsentBytes(): number {
    return this.#stream.writableLength + this.#queuedBytes
  }

  /** How often the network accepted everything; it changes as long as a client that is behind still reads. */
  get drainCount(): number {
    return this.#drainCount
  }

  /** Ends a client that has too much data waiting. */
  overflow(): void {
    if (this.#isClosed) return
    this.close()
    this.#owner.tooSlow()
  }

  fail(error: unknown, isReported = false): void {
    if (this.#isClosed) return
    this.close()
    this.#owner.sendFailed(error, isReported)
  }

  /** Writes the complete queue, for a connection that is about to be closed. */
  flush(): void {
    for (let chunk = this.#takeChunk(); chunk !== null; chunk = this.#takeChunk()) this.#stream.write(chunk)
  }

  /** Drops the queue and ignores all later frames. */
  close(): void {
    this.#isClosed = true
    this.#queue = null
    this.#queuedBytes = 0
  }

  #enqueue(bytes: Buffer): void {
    if (this.unsentBytes + bytes.length > this.maxBytes + this.#exemptBytes) {
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
    this.#drainCount += 1
    const stream = this.#stream
    while (stream.writableLength === 0) {
      const chunk = this.#takeChunk()
      if (chunk === null) break
      stream.write(chunk)
    }
    if (stream.writableLength > 0) {
      this.#fallBehind()
      return
    }
    this.isBehind = false
    this.#exemptBytes = 0
    if (!this.#isClosed) this.#owner.caughtUp()
  }

  /** Removes as many frames from the queue as fit into one write, at least one; null if the queue is empty. */
  #takeChunk(): Buffer | null {
    const queue = this.#queue
    const first = queue?.[0]
    if (queue === null || first === undefined) return null
    let count = 1
    let bytes = first.length
    for (let next = queue[count]; next !== undefined && bytes + next.length <= MAX_WRITE_BYTES; next = queue[count]) {
      bytes += next.length
      count += 1
    }
    const taken = queue.splice(0, count)
    if (queue.length === 0) this.#queue = null
    this.#queuedBytes -= bytes
    return count === 1 ? first : Buffer.concat(taken, bytes)
  }
}
