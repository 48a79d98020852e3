import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { closeFrame, FrameError, FrameScanner, pingFrame } from './frames.js'

/** Unsent bytes for one side above which the gateway stops reading from the other. */
const MAX_UNSENT_BYTES = 256 * 1024

/** How long a side may take to complete the close handshake. */
const CLOSE_TIMEOUT_MS = 5_000

/** A close code of applications: the other side of the connection was lost. */
const LOST = 4006

export interface TunnelOptions {
  readonly hasExtensions: boolean
  /** The largest message of the browser. */
  readonly maxMessageBytes: number
}

/**
 * A WebSocket between a browser and a backend. The handshakes are done. Frames pass unchanged, with their masks and
 * extensions; the gateway adds pings and close frames between them.
 */
export class WebSocketTunnel {
  readonly browser: TunnelSide
  readonly backend: TunnelSide
  #timer: NodeJS.Timeout | null = null

  constructor(browser: Socket, backend: Duplex, { hasExtensions, maxMessageBytes }: TunnelOptions) {
    const unlimited = Number.MAX_SAFE_INTEGER
    this.browser = new TunnelSide(browser, new FrameScanner({ isMasked: true, hasExtensions, maxMessageBytes }))
    this.backend = new TunnelSide(
      backend,
      new FrameScanner({ isMasked: false, hasExtensions, maxMessageBytes: unlimited })
    )
    this.#connect(this.browser, this.backend)
    this.#connect(this.backend, this.browser)
  }

  /** Passes on what arrived with the handshakes, and then everything else. */
  start(fromBrowser: Buffer, fromBackend: Buffer): void {
    this.#pass(this.backend, this.browser, fromBackend)
    this.#pass(this.browser, this.backend, fromBrowser)
    for (const { socket } of [this.browser, this.backend]) socket.resume()
  }

  /** Closes both sides with this code. */
  close(code: number, reason = ''): void {
    this.#closeSide(this.browser, this.backend, code, reason)
    this.#closeSide(this.backend, this.browser, code, reason)
  }

  /** Closes both sides at once. */
  destroy(): void {
    for (const { socket } of [this.browser, this.backend]) socket.destroy()
  }

  /** Sends a ping to a side, unless it is in the middle of a frame. */
  ping(side: TunnelSide): void {
    const other = this.#otherOf(side)
    if (!side.isClosing && other.scanner.isBetweenFrames) side.socket.write(pingFrame(side === this.backend))
  }

  /** Whether a side is closing. It has a few seconds, whatever its other limits are. */
  get isClosing(): boolean {
    return this.#timer !== null
  }

  onceClosed(callback: () => void): void {
    let open = 2
    const closed = (): void => {
      open -= 1
      if (open === 0) callback()
    }
    for (const { socket } of [this.browser, this.backend]) {
      if (socket.closed) closed()
      else socket.once('close', closed)
    }
  }

  #otherOf(side: TunnelSide): TunnelSide {
    return side === this.browser ? this.backend : this.browser
  }

  #connect(from: TunnelSide, to: TunnelSide): void {
    const { socket } = from
    socket.on('data', (chunk: Buffer) => this.#pass(from, to, chunk))
    socket.on('end', () => this.#ended(from, to))
    // `close` follows.
    socket.on('error', () => undefined)
    socket.on('close', () => {
      this.#ended(from, to)
      if (to.socket.closed && this.#timer !== null) clearTimeout(this.#timer)
    })
  }

  #pass(from: TunnelSide, to: TunnelSide, chunk: Buffer): void {
    from.hasSent = true
    let bytes: Buffer
    try {
      bytes = from.scanner.next(chunk)
    } catch (error) {
      if (!(error instanceof FrameError)) throw error
      this.close(error.code)
      return
    }
    if (bytes.length > 0 && !to.isClosing) this.#write(from, to, bytes)
    if (from.scanner.hasClosed) this.#startTimer()
  }

  #write(from: TunnelSide, to: TunnelSide, bytes: Buffer): void {
    if (to.socket.write(bytes) || to.socket.writableLength <= MAX_UNSENT_BYTES) return
    from.socket.pause()
    to.socket.once('drain', () => from.socket.resume())
  }

  /** The close handshake is complete, or the connection was lost without one. */
  #ended(from: TunnelSide, to: TunnelSide): void {
    if (from.scanner.hasClosed || from.isClosing) to.end()
    else this.#closeSide(to, from, LOST, '')
    from.end()
    // A side that was reset loses the data that it has not read yet.
    if (from.socket.destroyed) this.#startTimer()
  }

  #closeSide(side: TunnelSide, other: TunnelSide, code: number, reason: string): void {
    // A close frame has passed already, or it would be read as a part of another frame.
    if (!side.isClosing && !other.scanner.hasClosed && other.scanner.isBetweenFrames)
      side.socket.write(closeFrame(code, reason, side === this.backend))
    side.end()
    // Its answer completes the close handshake, and is passed to no one.
    side.socket.resume()
    this.#startTimer()
  }

  #startTimer(): void {
    if (this.#timer !== null || (this.browser.socket.closed && this.backend.socket.closed)) return
    this.#timer = setTimeout(() => this.destroy(), CLOSE_TIMEOUT_MS)
  }
}

/** One side of a tunnel. */
export class TunnelSide {
  readonly socket: Duplex
  /** Checks what this side sends. */
  readonly scanner: FrameScanner
  /** Whether the gateway sends nothing more to this side. */
  isClosing = false
  /** Whether something has arrived since the last check. */
  hasSent = true
  #wasPinged = false

  constructor(socket: Duplex, scanner: FrameScanner) {
    this.socket = socket
    this.scanner = scanner
  }

  end(): void {
    this.isClosing = true
    if (!this.socket.writableEnded) this.socket.end()
  }

  /** Pings after a silent interval. Returns false if the next one was silent too. */
  checkAlive(ping: () => void): boolean {
    // Nothing is read from a paused side, so its silence means nothing.
    const isAlive = this.hasSent || this.socket.isPaused()
    if (!isAlive && this.#wasPinged) return false
    this.#wasPinged = !isAlive
    if (!isAlive) ping()
    this.hasSent = false
    return true
  }
}
