import { Close } from './relay-session.js'

/** The relay's side of a connection. */
export interface SocketHandler {
  /** Resolves to a `Close` if the relay closes the connection. */
  receive(frame: string): Promise<Close | null>
  end(): void
}

/** The relay's side of a connection. */
export interface ServerSocket {
  send(message: object): void
  close(code: number, reason: string): void
}

export interface FakeCloseEvent {
  readonly code: number
  readonly reason: string
  readonly wasClean: boolean
}

/** The part of the interface of a `WebSocket` that the official client uses. */
export interface FakeSocket {
  readonly url: string
  readonly readyState: number
  binaryType: string
  onopen: ((event: object) => void) | null
  onmessage: ((event: { readonly data: string }) => void) | null
  onerror: ((event: object) => void) | null
  onclose: ((event: FakeCloseEvent) => void) | null
  send(frame: string): void
  close(code?: number, reason?: string): void
}

const [CONNECTING, OPEN, CLOSED] = [0, 1, 3]

/** The code for a connection that broke. */
export const BROKEN = 1006

/**
 * A `WebSocket` class whose connections lead to `accept`, in memory. Events are microtasks, so that they also arrive while
 * a test has replaced the timers.
 */
export const fakeWebSocketClass = (
  accept: (socket: ServerSocket) => SocketHandler
): (new (
  url: string | URL
) => FakeSocket) =>
  class FakeWebSocket implements FakeSocket {
    readyState = CONNECTING
    binaryType = 'blob'
    onopen: ((event: object) => void) | null = null
    onmessage: ((event: { readonly data: string }) => void) | null = null
    onerror: ((event: object) => void) | null = null
    onclose: ((event: FakeCloseEvent) => void) | null = null
    readonly url: string
    readonly #handler: SocketHandler
    #received: Promise<void> = Promise.resolve()

    constructor(url: string | URL) {
      this.url = String(url)
      this.#handler = accept({
        send: (message) => {
          const data = JSON.stringify(message)
          queueMicrotask(() => this.readyState === OPEN && this.onmessage?.({ data }))
        },
        close: (code, reason) => this.#end(code, reason)
      })
      queueMicrotask(() => {
        if (this.readyState !== CONNECTING) return
        this.readyState = OPEN
        this.onopen?.({})
      })
    }

    send(frame: string): void {
      this.#received = this.#received.then(async () => {
        const closed = this.readyState === OPEN ? await this.#handler.receive(String(frame)) : null
        if (closed instanceof Close) this.#end(closed.code, closed.reason)
      })
    }

    close(code = 1000, reason = ''): void {
      this.#end(code, reason)
    }

    #end(code: number, reason: string): void {
      if (this.readyState === CLOSED) return
      this.readyState = CLOSED
      this.#handler.end()
      queueMicrotask(() => this.onclose?.({ code, reason, wasClean: code !== BROKEN }))
    }
  }
