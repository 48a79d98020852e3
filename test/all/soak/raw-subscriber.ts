import { WebSocket } from 'ws'
import { relayToken } from '../../helper/relay-rules.js'
import type { ServerMessage, ServerPush, SubscribeResult } from '../../helper/server-message.js'
import type { SoakChannel } from './channels.js'
import { Journal } from './journal.js'
import type { Random } from './random.js'
import { isTerminal, type Report, type Subscriber } from './subscriber.js'

const RETRY_MS = { low: 50, high: 500 }
/** A frozen node accepts the TCP connection and never responds. */
const HANDSHAKE_MS = 5_000

export interface RawSubscriberOptions {
  readonly name: string
  /** It connects to a random one of these each time. */
  readonly urls: readonly string[]
  readonly channels: readonly SoakChannel[]
  /** The token subscribes it, instead of a command. */
  readonly isServerSide: boolean
  readonly isTemporary?: boolean
  readonly random: Random
  readonly report: Report
}

/** Speaks the protocol itself, so that nothing stands between the bytes of the relay and the journal. */
export class RawSubscriber implements Subscriber {
  readonly name: string
  readonly user: string
  readonly journals: readonly Journal[]
  connection: string | null = null
  connects = 0
  readonly closes = new Map<number, number>()
  readonly #options: RawSubscriberOptions
  readonly #subscribed = new Set<Journal>()
  readonly #pending = new Map<number, Journal>()
  readonly #timers = new Set<NodeJS.Timeout>()
  #socket: WebSocket
  #lastId = 0
  #isStopped = false

  constructor(options: RawSubscriberOptions) {
    this.#options = options
    this.name = options.name
    this.user = options.name
    this.journals = options.channels.map((channel) => new Journal(options.name, channel, options.isTemporary))
    this.#socket = this.#open()
  }

  get isSubscribed(): boolean {
    return this.#subscribed.size === this.journals.length
  }

  reset(): void {
    this.#socket.terminate()
  }

  pause(): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  stop(): void {
    this.#isStopped = true
    for (const timer of this.#timers) clearTimeout(timer)
    this.#socket.terminate()
  }

  #open(): WebSocket {
    const { urls, random } = this.#options
    const url = random.pick(urls).replace('http', 'ws')
    const socket = new WebSocket(`${url}/connection/websocket`, { handshakeTimeout: HANDSHAKE_MS })
    // A close follows every error.
    socket.on('error', () => undefined)
    socket.on('open', () => this.#connect())
    socket.on('message', (data) => {
      for (const line of String(data).split('\n')) if (line !== '') this.#message(JSON.parse(line))
    })
    socket.on('close', (code, reason) => this.#closed(code, String(reason)))
    return socket
  }

  #connect(): void {
    const { isServerSide } = this.#options
    const channels = this.journals.map(({ channel }) => channel.name)
    const token = relayToken({ sub: this.user, ...(isServerSide ? { channels } : {}) })
    const subs = Object.fromEntries(this.journals.map((journal) => [journal.channel.name, positionOf(journal)]))
    const connect = { id: ++this.#lastId, connect: { token, ...(isServerSide ? { subs } : {}) } }
    const subscribes = isServerSide ? [] : this.journals.map((journal) => this.#subscribeCommand(journal))
    this.#send([connect, ...subscribes])
  }

  #subscribeCommand(journal: Journal): unknown {
    this.#pending.set(++this.#lastId, journal)
    return { id: this.#lastId, subscribe: { channel: journal.channel.name, ...positionOf(journal) } }
  }

  #send(commands: readonly unknown[]): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return
    this.#socket.send(commands.map((command) => JSON.stringify(command)).join('\n'))
  }

  #message(message: ServerMessage): void {
    const { id, error, connect, subscribe, push } = message
    if (push !== undefined) this.#push(push)
    else if (id === undefined) this.#send([{}])
    else if (error !== undefined) this.#failed(id, error)
    else if (connect !== undefined) {
      this.connection = connect.client ?? null
      this.connects++
      for (const journal of this.journals) {
        const result = connect.subs?.[journal.channel.name]
        if (result !== undefined) this.#begin(journal, result)
      }
    } else if (subscribe !== undefined) {
      const journal = this.#pending.get(id)
      this.#pending.delete(id)
      if (journal === undefined) this.#violation('', 'a command receives one reply', `a second reply ${id}`)
      else this.#begin(journal, subscribe)
    }
  }

  #begin(journal: Journal, result: SubscribeResult): void {
    const {
      epoch = '',
      offset = 0,
      recovered = false,
      was_recovering: wasRecovering = false,
      publications = []
    } = result
    this.#subscribed.add(journal)
    journal.subscribed(epoch, offset, wasRecovering, recovered)
    for (const { offset = 0, data } of publications) journal.received(offset, data)
  }

  #push({ channel = '', pub, unsubscribe }: ServerPush): void {
    const journal = this.journals.find(({ channel: { name } }) => name === channel)
    if (journal === undefined) return
    if (pub !== undefined) {
      if (!this.#subscribed.has(journal))
        this.#violation(channel, 'publications arrive while subscribed', `offset ${pub.offset} without a subscription`)
      journal.received(pub.offset ?? 0, pub.data)
    }
    if (unsubscribe === undefined) return
    this.#subscribed.delete(journal)
    this.#retry(() => this.#send([this.#subscribeCommand(journal)]))
  }

  #failed(id: number, { code, message, temporary }: NonNullable<ServerMessage['error']>): void {
    const journal = this.#pending.get(id)
    this.#pending.delete(id)
    if (temporary !== true)
      this.#violation(journal?.channel.name ?? '', 'a valid command is not rejected', `${code} ${message}`)
    // After a connect that failed the relay drops the commands behind it; an unexpected error needs a fresh start.
    if (journal === undefined || temporary !== true) this.#socket.terminate()
    else this.#retry(() => this.#send([this.#subscribeCommand(journal)]))
  }

  #closed(code: number, reason: string): void {
    this.connection = null
    this.#subscribed.clear()
    this.#pending.clear()
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers.clear()
    if (this.#isStopped) return
    this.closes.set(code, (this.closes.get(code) ?? 0) + 1)
    if (isTerminal(code)) this.#violation('', 'a client is never disconnected without reconnect', `${code} ${reason}`)
    this.#retry(() => {
      this.#socket = this.#open()
    })
  }

  #retry(work: () => void): void {
    const timer = setTimeout(
      () => {
        this.#timers.delete(timer)
        work()
      },
      this.#options.random.whole(RETRY_MS.low, RETRY_MS.high)
    )
    this.#timers.add(timer)
  }

  #violation(channel: string, rule: string, received: string): void {
    this.#options.report({ subject: this.name, channel, rule, expected: 'a connection that can be resumed', received })
  }
}

const positionOf = ({ position }: Journal): Readonly<Record<string, unknown>> =>
  position === null ? {} : { recover: true, epoch: position.epoch, offset: position.offset }
