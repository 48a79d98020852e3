import type { ServerResponse } from 'node:http'
import type { ClientSink } from '../core/connection.js'
import type { Disconnect } from '../core/disconnect.js'
import type { Framing } from '../core/framing.js'
import type { Wire } from '../core/outbox.js'
import { disconnectPush, PING } from '../core/protocol.js'

/** The way out through an HTTP response that does not end. Its own wire: a response does not tell what its socket holds. */
export class ResponseSink implements ClientSink, Wire {
  readonly wire = this
  readonly transport: 'http_stream' | 'sse'
  readonly framing: Framing
  readonly address: string
  readonly isEmulated = true
  readonly pingsItself = false
  readonly pingBytes: Buffer
  readonly #response: ServerResponse
  #unsentBytes = 0
  #whenDrained: (() => void)[] = []

  constructor(transport: 'http_stream' | 'sse', framing: Framing, response: ServerResponse, address: string) {
    this.transport = transport
    this.framing = framing
    this.address = address
    this.pingBytes = framing(PING)
    this.#response = response
  }

  get writableLength(): number {
    return this.#unsentBytes
  }

  write(bytes: Buffer): void {
    this.#unsentBytes += bytes.length
    this.#response.write(bytes, (error) => {
      this.#unsentBytes -= bytes.length
      if (!error && this.#unsentBytes === 0) this.#drained()
    })
  }

  whenDrained(then: () => void): void {
    this.#whenDrained.push(then)
  }

  /** What the client sends comes in requests of its own. */
  pause(): void {}

  resume(): void {}

  /** There is no close frame, so the reason is the last thing said. */
  close(reason: Disconnect): void {
    this.#response.end(this.framing(disconnectPush(reason)))
    // A client that does not read keeps nothing open.
    this.#response.socket?.setTimeout(CLOSE_TIMEOUT_MS, () => this.#response.destroy())
  }

  #drained(): void {
    const waiting = this.#whenDrained
    this.#whenDrained = []
    for (const then of waiting) then()
  }
}

const CLOSE_TIMEOUT_MS = 5000
