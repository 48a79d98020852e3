import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from 'undici'
import { Refusal } from '../errors.js'

/** Somebody who wants a connection to the backend. */
export interface Waiter {
  /** Holds a connection for as long as its sender likes to take: the body is passed on as it comes. */
  readonly streams: boolean
  /** Made for a request without a verified token: anybody can send any number of these. */
  readonly anonymous: boolean
  /** Its turn. From now on the connection is its own, until it calls `leave`. */
  run(connection: Client, waitedMs: number): void
  /** Its turn did not come in time, or there are too many who wait already. */
  refuse(refusal: Refusal): void
}

export interface SlotLimits {
  readonly connections: number
  /** With those that wait. */
  readonly inFlight: number
  /** The share of all three that anonymous requests may have: connections, streams, and all that are in flight. */
  readonly anonymousPercent: number
  /** How long anybody waits. */
  readonly waitMs: number
}

interface Waiting {
  readonly since: number
  readonly deadline: NodeJS.Timeout
}

/**
 * The backend's connections: who uses which, and who waits for one. Undici's own pool has a queue too, but one without end,
 * without a deadline, and that nobody can leave; and it looks through all its connections for a free one, twice for each
 * request.
 */
export class BackendSlots {
  readonly #limits: SlotLimits
  /** What all requests together may have. Streams get half of the connections: senders that never finish must leave some. */
  readonly #all: Shares
  readonly #anonymous: Shares
  readonly #waiting = new Map<Waiter, Waiting>()
  readonly #open: () => Client
  readonly #clients: Client[] = []
  /** The last that was used comes first: so few stay open as are needed. */
  readonly #idle: Client[] = []
  /** Whether those who wait are about to be served; who comes now is not served before them. */
  #handsOver = false

  /** `open` makes one that connects, and connects again, when it is used. */
  constructor(limits: SlotLimits, open: () => Client) {
    this.#limits = limits
    this.#open = open
    this.#all = sharesOf(limits, 100)
    this.#anonymous = sharesOf(limits, limits.anonymousPercent)
  }

  get inFlight(): number {
    return this.#all.inFlight.used
  }

  /** Runs it, at once or when its turn comes, or refuses it. */
  enter(waiter: Waiter): void {
    if (!this.#isLeft(waiter, 'inFlight')) {
      waiter.refuse(overloaded())
      return
    }
    this.#count(waiter, 'inFlight', 1)
    if (!this.#handsOver && this.#canRun(waiter)) waiter.run(this.#take(waiter), 0)
    else this.#wait(waiter)
  }

  /** For one that still waits. */
  giveUp(waiter: Waiter): void {
    if (this.#stopWaiting(waiter)) this.#count(waiter, 'inFlight', -1)
  }

  /** For one that has run. */
  leave(waiter: Waiter, connection: Client): void {
    this.#count(waiter, 'inFlight', -1)
    this.#count(waiter, 'connections', -1)
    if (waiter.streams) this.#count(waiter, 'streams', -1)
    this.#idle.push(connection)
    if (this.#waiting.size === 0 || this.#handsOver) return
    // Not at once: the connection is in the middle of saying how a request ended, and must not be given the next one before
    // it has done with that. Undici ends the program otherwise.
    this.#handsOver = true
    process.nextTick(() => this.#handOver())
  }

  /** Ends all connections, and what is on them. */
  async destroy(): Promise<void> {
    // Those whose browsers were just cut off are told so in this very turn, and leave by themselves.
    await delay(1)
    await Promise.all(this.#clients.map((connection) => connection.destroy()))
  }

  #canRun(waiter: Waiter): boolean {
    return this.#isLeft(waiter, 'connections') && (!waiter.streams || this.#isLeft(waiter, 'streams'))
  }

  #isLeft({ anonymous }: Waiter, what: keyof Shares): boolean {
    return isFree(this.#all[what]) && (!anonymous || isFree(this.#anonymous[what]))
  }

  #count({ anonymous }: Waiter, what: keyof Shares, change: 1 | -1): void {
    this.#all[what].used += change
    if (anonymous) this.#anonymous[what].used += change
  }

  #handOver(): void {
    this.#handsOver = false
    for (const [waiter, { since }] of this.#waiting) {
      if (!isFree(this.#all.connections)) return
      if (!this.#canRun(waiter)) continue
      this.#stopWaiting(waiter)
      waiter.run(this.#take(waiter), performance.now() - since)
    }
  }

  #take(waiter: Waiter): Client {
    this.#count(waiter, 'connections', 1)
    if (waiter.streams) this.#count(waiter, 'streams', 1)
    const idle = this.#idle.pop()
    if (idle !== undefined) return idle
    const opened = this.#open()
    this.#clients.push(opened)
    return opened
  }

  #wait(waiter: Waiter): void {
    const deadline = setTimeout(() => {
      this.giveUp(waiter)
      // With a connection left it is the share of the anonymous that is used up, which is no fault of the backend.
      waiter.refuse(waiter.anonymous && isFree(this.#all.connections) ? overloaded() : noConnection())
    }, this.#limits.waitMs)
    this.#waiting.set(waiter, { since: performance.now(), deadline })
  }

  #stopWaiting(waiter: Waiter): boolean {
    clearTimeout(this.#waiting.get(waiter)?.deadline)
    return this.#waiting.delete(waiter)
  }
}

interface Share {
  readonly max: number
  used: number
}

interface Shares {
  readonly connections: Share
  readonly streams: Share
  /** With those that wait. */
  readonly inFlight: Share
}

const isFree = ({ used, max }: Share): boolean => used < max

/** At least one of each, or nobody could ever be served. */
const sharesOf = ({ connections, inFlight }: SlotLimits, percent: number): Shares => {
  const share = (whole: number): Share => ({ max: Math.max(1, Math.floor((whole * percent) / 100)), used: 0 })
  return { connections: share(connections), streams: share(Math.floor(connections / 2)), inFlight: share(inFlight) }
}

const noConnection = (): Refusal =>
  new Refusal('BACKEND_TIMEOUT', { cause: new Error('no connection to the backend became free') })

const overloaded = (): Refusal => new Refusal('OVERLOADED', { headers: { 'retry-after': '1' } })
