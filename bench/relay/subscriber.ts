import { connect, type Socket } from 'node:net'
import type { Dialect, Subscribe } from './dialect.js'
import { clientFrame, FrameReader } from './frames.js'

/** Shared by all sockets, because each read is processed before the next one. */
const BUFFER = Buffer.allocUnsafe(512 * 1024)

/** Longer messages are publications. */
const SHORT = 64

/** One subscribed client on a bare socket. */
export class Subscriber {
  readonly #socket: Socket
  readonly #dialect: Dialect
  #reader: FrameReader | null = null
  #upgrade = ''
  #subscribed: (() => void) | null = null

  /** `done.publication` is called for each publication, without its content. */
  constructor(
    port: number,
    dialect: Dialect,
    subscribe: Subscribe,
    done: { subscribed: () => void; publication: () => void; failed: (error: unknown) => void }
  ) {
    this.#dialect = dialect
    this.#subscribed = done.subscribed
    this.#socket = connect({
      port,
      host: '127.0.0.1',
      noDelay: true,
      onread: {
        buffer: BUFFER,
        callback: (count) => {
          try {
            this.#read(BUFFER, count, subscribe, done.publication)
          } catch (error) {
            done.failed(error)
          }
          return true
        }
      }
    })
    this.#socket.once('connect', () => {
      this.#socket.write(
        `GET ${dialect.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`
      )
    })
    this.#socket.once('error', done.failed)
    this.#socket.once('close', () => done.failed(new Error('a connection ended')))
  }

  end(): void {
    this.#socket.removeAllListeners('close')
    this.#socket.destroy()
  }

  #read(buffer: Buffer, count: number, subscribe: Subscribe, onPublication: () => void): void {
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
    this.#reader = this.#startReading(subscribe, onPublication)
    const greeting = this.#dialect.greeting(subscribe)
    if (greeting !== null) this.#send(greeting)
    this.#reader.read(rest, rest.length)
  }

  #startReading(subscribe: Subscribe, onPublication: () => void): FrameReader {
    const { ping, pong, reply } = this.#dialect
    const reader = new FrameReader(Number.POSITIVE_INFINITY, (_length, payload) => {
      if (payload === null) {
        onPublication()
        return
      }
      const message = payload.toString('latin1')
      if (message === ping) this.#send(pong)
      if (message === ping || this.#subscribed === null) return
      const response = reply(message, subscribe)
      if (typeof response === 'string') this.#send(response)
      if (response !== true) return
      reader.maxPayload = SHORT
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
