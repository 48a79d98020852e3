import { setTimeout as delay } from 'node:timers/promises'
import { type Answer, EventBackend, type EventRequest, HANG, RawAnswer, RESET } from '../../helper/event-backend.js'
import type { Random } from '../soak/random.js'

/** Seconds until a connection or a subscription expires, and the backend is asked again. */
export const LEASE_SECONDS = 15

const FAULTS = ['stop', 'hang', 'reset', 'status', 'garbage', 'slow'] as const
type Fault = (typeof FAULTS)[number]

const EVENTS = ['connect', 'refresh', 'subscribe', 'sub_refresh', 'publish', 'rpc'] as const

export const leaseOf = (user: string, channel: string): string => `${user} ${channel}`

/** A backend that changes its mind about users and channels, and fails in between. */
export class ChaosBackend {
  readonly events = new EventBackend()
  /** Users that may not connect. */
  readonly banned = new Set<string>()
  /** User and channel, as `leaseOf` writes them. */
  readonly denied = new Set<string>()
  readonly faults = new Map<Fault, number>()
  readonly answered = new Map<string, number>()
  readonly #random: Random
  #fault: Fault | null = null

  constructor(random: Random) {
    this.#random = random
    for (const event of EVENTS) this.events.on(event, (request) => this.#answer(request))
  }

  mayConnect(user: string): boolean {
    return !this.banned.has(user)
  }

  maySubscribe(user: string, channel: string): boolean {
    return !this.denied.has(leaseOf(user, channel))
  }

  /** Fails for some seconds in a random way. */
  async fail(): Promise<void> {
    const fault = this.#random.pick(FAULTS)
    this.faults.set(fault, (this.faults.get(fault) ?? 0) + 1)
    this.#fault = fault
    if (fault === 'stop') await this.events.stop()
    await delay(this.#random.whole(500, 5000))
    // The requests that hang are lost with the connections.
    if (fault === 'hang') await this.events.stop()
    this.#fault = null
    if (fault === 'stop' || fault === 'hang') await this.events.start()
  }

  /** Forbids something that was allowed, or allows it again. */
  changeMind(users: readonly string[], channels: readonly string[]): void {
    const user = this.#random.pick(users)
    if (this.#random.fraction() < 0.2) toggle(this.banned, user)
    else toggle(this.denied, leaseOf(user, this.#random.pick(channels)))
  }

  async #answer(request: EventRequest): Promise<Answer> {
    switch (this.#fault) {
      case 'hang':
        return HANG
      case 'reset':
        return RESET
      case 'status':
        return new RawAnswer(this.#random.pick([500, 502, 302, 204]))
      case 'garbage':
        return new RawAnswer(
          200,
          this.#random.pick(['', '<html>', '[]', '{"result":{"user":5,"expire_at":"x","data"', 'nul'])
        )
      case 'slow':
        await delay(this.#random.whole(100, 1500))
        break
      default:
    }
    // The rules of this moment, as a backend with a database would have them.
    this.answered.set(request.event, (this.answered.get(request.event) ?? 0) + 1)
    return this.#decide(request)
  }

  #decide({ event, headers, body }: EventRequest): Answer {
    const user = String(body.user ?? headers['x-user'])
    const channel = String(body.channel)
    const expireAt = Math.floor(Date.now() / 1000) + LEASE_SECONDS
    switch (event) {
      case 'connect':
        return this.mayConnect(user)
          ? { result: { user, expire_at: expireAt, meta: { user } } }
          : { disconnect: { code: 4500, reason: 'banned' } }
      case 'refresh':
        return { result: this.mayConnect(user) ? { expire_at: expireAt } : { expired: true } }
      case 'subscribe':
        return this.maySubscribe(user, channel)
          ? { result: { expire_at: expireAt, data: { user } } }
          : { error: { code: 403, message: 'not a member' } }
      case 'sub_refresh':
        return { result: this.maySubscribe(user, channel) ? { expire_at: expireAt } : { expired: true } }
      case 'publish':
        return { result: { data: { from: user } } }
      default:
        return { result: { data: { user, echo: body.data } } }
    }
  }
}

const toggle = <T>(set: Set<T>, value: T): void => {
  if (!set.delete(value)) set.add(value)
}
