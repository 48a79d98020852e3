import { connect, type Socket } from 'node:net'
import type { Dialect, Subscribe } from './dialect.js'
import { clientFrame, FrameReader } from './frames.js'

/** Shared by all sockets, because each read is processed before the next one. */
const BUFFER = Buffer.allocUnsafe(512 * 1024)

/** Longer messages are publications. */
const SHORT = 64

export interface SubscriberCallbacks {
  subscribed(): void
  /** `message` is null unless the client reads publications. */
  publication(message: string | null): void
  failed(error: unknown): void
}

export interface ReadingOptions {
  /** Whether publications are passed to the callback, which costs the load generator more CPU time. */
  readonly readsPublications?: boolean
  /** A slow reader: the client reads no faster than this. */
  readonly bytesPerSecond?: number
}

/** Pause of a slow reader between two reads. */
const SLOW_READ_MS = 100

/** One subscribed client on a bare socket. */
export class Subscriber {
  readonly #socket: Socket
  readonly #dialect: Dialect
  readonly #readsPublications: boolean
  #reader: FrameReader | null = null
  #upgrade = ''
  #subscribed: (() => void) | null = null

  constructor(
    port: number,
    dialect: Dialect,
    subscribe: Subscribe,
    done: SubscriberCallbacks,
    { readsPublications = false, bytesPerSecond }: ReadingOptions = {}
  ) {
    this.#dialect = dialect
    this.#readsPublications = readsPublications
    this.#subscribed = () => done.subscribed()
    const isSlow = bytesPerSecond !== undefined
    const buffer = isSlow ? Buffer.alloc((bytesPerSecond * SLOW_READ_MS) / 1000) : BUFFER
    this.#socket = connect({
      port,
      host: '127.0.0.1',
      noDelay: true,
      onread: {
        buffer,
        callback: (count) => {
          try {
            this.#read(buffer, count, subscribe, done)
          } catch (error) {
            done.failed(error)
          }
          if (isSlow) setTimeout(() => this.#socket.resume(), SLOW_READ_MS)
          return !isSlow
        }
      }
    })
    this.#socket.once('connect', () => {
      this.#socket.write(
        `GET ${dialect.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`
      )
    })
    this.#socket.once('error', (error) => done.failed(error))
    this.#socket.once('close', () => done.failed(new Error('a connection ended')))
  }

  end(): void {
    this.#socket.removeAllListeners('close')
    this.#socket.destroy()
  }

  #read(buffer: Buffer, count: number, subscribe: Subscribe, done: SubscriberCallbacks): void {
    if (this.#reader !== null) {
      this.#reader.read(buffer, count)
      return
    }
    this.#upgrade += buffer.toString('latin1', 0, count)
    const end = this.#upgrade.indexOf('\r\n\r\n')
    if (end === -1) return
    if (!this.#upgrade.startsWith('HTTP/1.1 101')) throw new Error(`no upgrade: ${this.#upgrade.slice(0, 40)}`)

    const rest = Buffer.from(this.#upgrade.slice(end + 4), 'latin1')
    this.#upgrade = ''
    this.#reader = this.#startReading(subscribe, done)
    const greeting = this.#dialect.greeting(subscribe)
    if (greeting !== null) this.#send(greeting)
    this.#reader.read(rest, rest.length)
  }

  #startReading(subscribe: Subscribe, done: SubscriberCallbacks): FrameReader {
    const { ping, pong, reply } = this.#dialect
    const reader = new FrameReader(Number.POSITIVE_INFINITY, (_length, payload) => {
      if (payload === null) {
        done.publication(null)
        return
      }
      const message = payload.toString('latin1')
      if (message === ping) {
        this.#send(pong)
        return
      }
      if (this.#subscribed === null) {
        if (payload.length > SHORT) done.publication(message)
        return
      }
      const response = reply(message, subscribe)
      if (typeof response === 'string') this.#send(response)
      if (response !== true) return
      if (!this.#readsPublications) reader.maxPayload = SHORT
      const subscribed = this.#subscribed
      this.#subscribed = null
      subscribed()
    })
    return reader
  }

  #send(text: string): void {
    this.#socket.write(clientFrame(text, this.#dialect.isBinary))
  }
}
