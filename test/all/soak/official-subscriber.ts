import { Centrifuge, type Subscription } from 'centrifuge'
import { WebSocket } from 'ws'
import { EventSource } from '../../helper/event-source.js'
import { MutedOnCloseWebSocket } from '../../helper/muted-on-close-websocket.js'
import { observedFetch } from '../../helper/observed-fetch.js'
import { relayToken } from '../../helper/relay-rules.js'
import type { SoakChannel } from './channels.js'
import { Journal } from './journal.js'
import { type Report, SERVER_UNSUBSCRIBE, type Subscriber } from './subscriber.js'

export type TransportName = 'websocket' | 'http_stream' | 'sse'

/** Short enough that every client refreshes its token several times in a run. */
const TOKEN_SECONDS = 30
const RETRY = { min: 50, max: 1_000 }

export interface OfficialSubscriberOptions {
  readonly name: string
  readonly url: string
  readonly transport: TransportName
  readonly channels: readonly SoakChannel[]
  readonly report: Report
}

/** The `centrifuge` client, always at the same node. */
export class OfficialSubscriber implements Subscriber {
  readonly name: string
  readonly user: string
  readonly journals: readonly Journal[]
  connection: string | null = null
  connects = 0
  readonly closes = new Map<number, number>()
  readonly #client: Centrifuge
  readonly #subscriptions: readonly Subscription[]
  readonly #report: Report
  #socket: WebSocket | null = null
  #isStopped = false

  constructor({ name, url, transport, channels, report }: OfficialSubscriberOptions) {
    this.name = name
    this.user = name
    this.#report = report
    this.journals = channels.map((channel) => new Journal(name, channel))
    const endpoint = `${transport === 'websocket' ? url.replace('http', 'ws') : url}/connection/${transport}`
    const keep = (socket: WebSocket): void => {
      this.#socket = socket
    }
    this.#client = new Centrifuge([{ transport, endpoint }], {
      // The client constructs its socket itself; this keeps the socket so that a fault can break or pause it.
      websocket: class extends MutedOnCloseWebSocket {
        constructor(address: string) {
          super(address)
          keep(this)
        }
      },
      fetch: observedFetch,
      readableStream: ReadableStream,
      eventsource: EventSource,
      emulationEndpoint: `${url}/emulation`,
      minReconnectDelay: RETRY.min,
      maxReconnectDelay: RETRY.max,
      getToken: async () => relayToken({ sub: this.user }, { lifetimeSeconds: TOKEN_SECONDS })
    })
    this.#client.on('connected', ({ client }) => {
      this.connection = client
      this.connects++
    })
    this.#client.on('connecting', ({ code }) => {
      this.connection = null
      // 0 is the first connect; the client has codes of its own below 3000.
      if (code > 0) this.closes.set(code, (this.closes.get(code) ?? 0) + 1)
    })
    this.#client.on('disconnected', ({ code, reason }) => {
      this.connection = null
      if (!this.#isStopped) this.#violation('', 'a client is never disconnected without reconnect', `${code} ${reason}`)
    })
    // A connection that breaks is what the faults are for; the client retries.
    this.#client.on('error', () => undefined)
    this.#subscriptions = this.journals.map((journal) => this.#subscribe(journal))
    this.#client.connect()
  }

  get isSubscribed(): boolean {
    return this.#subscriptions.every(({ state }) => state === 'subscribed')
  }

  reset(): void {
    this.#socket?.terminate()
  }

  pause(): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.pause()
  }

  resume(): void {
    this.#socket?.resume()
  }

  stop(): void {
    this.#isStopped = true
    this.#client.disconnect()
  }

  #subscribe(journal: Journal): Subscription {
    const { name, takesDelta } = journal.channel
    const subscription = this.#client.newSubscription(name, {
      minResubscribeDelay: RETRY.min,
      maxResubscribeDelay: RETRY.max,
      ...(takesDelta ? { delta: 'fossil' } : {})
    })
    subscription.on('subscribed', ({ streamPosition, wasRecovering, recovered }) =>
      journal.subscribed(streamPosition?.epoch ?? '', streamPosition?.offset ?? 0, wasRecovering, recovered)
    )
    subscription.on('publication', ({ offset = 0, data }) => journal.received(offset, data))
    subscription.on('error', () => undefined)
    subscription.on('unsubscribed', ({ code, reason }) => {
      if (this.#isStopped) return
      if (code === SERVER_UNSUBSCRIBE) subscription.subscribe()
      else this.#violation(name, 'a subscription is never rejected', `${code} ${reason}`)
    })
    subscription.subscribe()
    return subscription
  }

  #violation(channel: string, rule: string, received: string): void {
    this.#report({ subject: this.name, channel, rule, expected: 'a connection that can be resumed', received })
  }
}
