import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Dialect, Subscribe } from './dialect.js'
import { clientFrame, FrameReader, serverFrame } from './frames.js'

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
  /** The client only counts the bytes of publications, which costs the load generator least. */
  readonly countsBytes?: boolean
  /** The port expects TLS; its certificate is self-signed. */
  readonly isEncrypted?: boolean
  readonly host?: string
}

/** Pause of a slow reader between two reads. */
const SLOW_READ_MS = 100

/** One subscribed client on a bare socket. */
export class Subscriber {
  readonly #socket: Socket
  readonly #dialect: Dialect
  readonly #readsPublications: boolean
  readonly #pingFrame: Buffer
  readonly countsBytes: boolean
  /** Bytes received since the client subscribed, if it counts them. */
  bytes = 0
  #reader: FrameReader | null = null
  #upgrade = ''
  #subscribed: (() => void) | null = null

  constructor(
    port: number,
    dialect: Dialect,
    subscribe: Subscribe,
    done: SubscriberCallbacks,
    options: ReadingOptions = {}
  ) {
    const { readsPublications = false, bytesPerSecond, countsBytes = false } = options
    const { isEncrypted = false, host = '127.0.0.1' } = options
    this.#dialect = dialect
    this.#pingFrame = serverFrame(dialect.ping, dialect.isBinary)
    this.countsBytes = countsBytes
    this.#readsPublications = readsPublications
    this.#subscribed = () => done.subscribed()
    const isSlow = bytesPerSecond !== undefined
    const buffer = isSlow ? Buffer.alloc((bytesPerSecond * SLOW_READ_MS) / 1000) : BUFFER
    const target = {
      port,
      host,
      noDelay: true,
      onread: {
        buffer,
        callback: (count: number): boolean => {
          try {
            this.#read(buffer, count, subscribe, done)
          } catch (error) {
            done.failed(error)
          }
          if (isSlow) setTimeout(() => this.#socket.resume(), SLOW_READ_MS)
          return !isSlow
        }
      }
    }
    this.#socket = isEncrypted ? connectTls({ ...target, rejectUnauthorized: false }) : connect(target)
    this.#socket.once(isEncrypted ? 'secureConnect' : 'connect', () => {
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
    if (this.countsBytes && this.#subscribed === null) {
      this.#count(buffer, count)
      return
    }
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

  /** Replies only to a ping at the end of the bytes. The server closes the connection of a missed one after the reading. */
  #count(buffer: Buffer, count: number): void {
    this.bytes += count
    const start = count - this.#pingFrame.length
    if (start >= 0 && buffer.compare(this.#pingFrame, 0, this.#pingFrame.length, start, count) === 0)
      this.#send(this.#dialect.pong)
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
