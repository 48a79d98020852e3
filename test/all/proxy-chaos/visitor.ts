import { Centrifuge, type Subscription } from 'centrifuge'
import { EventSource } from '../../helper/event-source.js'
import { MutedOnCloseWebSocket } from '../../helper/muted-on-close-websocket.js'
import { observedFetch } from '../../helper/observed-fetch.js'
import type { Random } from '../soak/random.js'
import type { ChaosBackend } from './backend.js'

const MAX_CHANNELS = 3

/** A user with an official client that comes and goes, subscribes, publishes and calls the backend. */
export class Visitor {
  readonly user: string
  /** Whether the user wants to be connected. */
  isHere = false
  /** Answers that belong to another user. */
  readonly mixedUp: string[] = []
  readonly #client: Centrifuge
  readonly #channels: readonly string[]
  readonly #random: Random
  readonly #subscriptions = new Map<string, Subscription>()
  #calls = 0

  constructor(user: string, port: number, channels: readonly string[], random: Random) {
    this.user = user
    this.#channels = channels
    this.#random = random
    const http = `http://127.0.0.1:${port}`
    const transport = random.pick(['websocket', 'websocket', 'websocket', 'http_stream', 'sse'] as const)
    const endpoint = `${transport === 'websocket' ? `ws://127.0.0.1:${port}` : http}/connection/${transport}`
    this.#client = new Centrifuge([{ transport, endpoint }], {
      websocket: MutedOnCloseWebSocket,
      fetch: observedFetch,
      readableStream: ReadableStream,
      eventsource: EventSource,
      emulationEndpoint: `${http}/emulation`,
      headers: { 'X-User': user },
      minReconnectDelay: 200,
      maxReconnectDelay: 3000
    })
    this.#client.on('error', () => undefined)
  }

  /** Does one random thing. */
  act(): void {
    const chance = this.#random.fraction()
    if (!this.isHere) this.come()
    else if (chance < 0.12) this.leave()
    else if (chance < 0.4) this.#subscribe(this.#random.pick(this.#channels))
    else if (chance < 0.55) this.#unsubscribe()
    else if (chance < 0.75) void this.#call()
    else if (chance < 0.9) this.#publish()
  }

  come(): void {
    this.isHere = true
    this.#client.connect()
  }

  leave(): void {
    this.isHere = false
    this.#client.disconnect()
  }

  /** Asks again for everything that was refused. */
  retry(): void {
    if (this.isHere && this.#client.state === 'disconnected') this.#client.connect()
    for (const subscription of this.#subscriptions.values())
      if (subscription.state === 'unsubscribed') subscription.subscribe()
  }

  /** Why the client is not in the state that the rules of the backend allow; null if it is. */
  violation(rules: Pick<ChaosBackend, 'mayConnect' | 'maySubscribe'>): string | null {
    const { state } = this.#client
    const expected = this.isHere && rules.mayConnect(this.user) ? 'connected' : 'disconnected'
    if (state !== expected) return `${this.user} is ${state} instead of ${expected}`
    if (state !== 'connected') return null
    for (const [channel, subscription] of this.#subscriptions) {
      const wanted = rules.maySubscribe(this.user, channel) ? 'subscribed' : 'unsubscribed'
      if (subscription.state !== wanted)
        return `${this.user} is ${subscription.state} instead of ${wanted} on ${channel}`
    }
    return null
  }

  get isConnected(): boolean {
    return this.#client.state === 'connected'
  }

  isSubscribedTo(channel: string): boolean {
    return this.isConnected && this.#subscriptions.get(channel)?.state === 'subscribed'
  }

  close(): void {
    this.#client.disconnect()
  }

  #subscribe(channel: string): void {
    const known = this.#subscriptions.get(channel)
    if (known === undefined && this.#subscriptions.size >= MAX_CHANNELS) return
    const subscription =
      known ?? this.#client.newSubscription(channel, { minResubscribeDelay: 200, maxResubscribeDelay: 3000 })
    if (known === undefined) {
      subscription.on('error', () => undefined)
      subscription.on('subscribed', ({ data }) => this.#check(data?.user))
    }
    this.#subscriptions.set(channel, subscription)
    subscription.subscribe()
  }

  #unsubscribe(): void {
    const [channel] = this.#random.some([...this.#subscriptions.keys()], 1)
    const subscription = channel === undefined ? undefined : this.#subscriptions.get(channel)
    if (channel === undefined || subscription === undefined) return
    this.#client.removeSubscription(subscription)
    this.#subscriptions.delete(channel)
  }

  async #call(): Promise<void> {
    const echo = `${this.user}-${++this.#calls}`
    try {
      const { data } = await this.#client.rpc('echo', echo)
      this.#check(data.user)
      if (data.echo !== echo) this.mixedUp.push(`${this.user} received the echo ${data.echo}`)
    } catch {
      // The backend failed, or the client left.
    }
  }

  #publish(): void {
    this.#client.publish(this.#random.pick(this.#channels), { from: 'anybody' }).catch(() => undefined)
  }

  #check(user: unknown): void {
    if (user !== this.user) this.mixedUp.push(`${this.user} received an answer for ${user}`)
  }
}
