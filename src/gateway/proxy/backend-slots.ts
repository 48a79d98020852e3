import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from 'undici'
import { Refusal } from '../errors.js'

/** Somebody who wants a connection to the backend. */
export interface Waiter {
  /** Holds a connection for as long as its sender likes to take: the body is passed on as it comes. */
  readonly streams: boolean
  /** Its turn. From now on the connection is its own, until it calls `leave`. */
  run(connection: Client, waitedMs: number): void
  /** Its turn did not come in time, or there are too many who wait already. */
  refuse(refusal: Refusal): void
}

export interface SlotLimits {
  readonly connections: number
  /** With those that wait. */
  readonly inFlight: number
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
  /** Senders that never finish must leave connections to everybody else. */
  readonly #maxStreams: number
  readonly #waiting = new Map<Waiter, Waiting>()
  readonly #open: () => Client
  readonly #all: Client[] = []
  /** The last that was used comes first: so few stay open as are needed. */
  readonly #idle: Client[] = []
  #used = 0
  #streams = 0
  /** Whether those who wait are about to be served; who comes now is not served before them. */
  #handsOver = false

  /** `open` makes one that connects, and connects again, when it is used. */
  constructor(limits: SlotLimits, open: () => Client) {
    this.#limits = limits
    this.#open = open
    this.#maxStreams = Math.max(1, Math.floor(limits.connections / 2))
  }

  get inFlight(): number {
    return this.#used + this.#waiting.size
  }

  /** Runs it, at once or when its turn comes, or refuses it. */
  enter(waiter: Waiter): void {
    if (this.inFlight >= this.#limits.inFlight) waiter.refuse(overloaded())
    else if (!this.#handsOver && this.#isFree(waiter)) waiter.run(this.#take(waiter), 0)
    else this.#wait(waiter)
  }

  /** For one that still waits. */
  giveUp(waiter: Waiter): void {
    clearTimeout(this.#waiting.get(waiter)?.deadline)
    this.#waiting.delete(waiter)
  }

  /** For one that has run. */
  leave({ streams }: Waiter, connection: Client): void {
    this.#used -= 1
    if (streams) this.#streams -= 1
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
    await Promise.all(this.#all.map((connection) => connection.destroy()))
  }

  #isFree({ streams }: Waiter): boolean {
    return this.#used < this.#limits.connections && !(streams && this.#streams >= this.#maxStreams)
  }

  #handOver(): void {
    this.#handsOver = false
    for (const [waiter, { since }] of this.#waiting) {
      if (this.#used >= this.#limits.connections) return
      if (!this.#isFree(waiter)) continue
      this.giveUp(waiter)
      waiter.run(this.#take(waiter), performance.now() - since)
    }
  }

  #take({ streams }: Waiter): Client {
    this.#used += 1
    if (streams) this.#streams += 1
    const idle = this.#idle.pop()
    if (idle !== undefined) return idle
    const opened = this.#open()
    this.#all.push(opened)
    return opened
  }

  #wait(waiter: Waiter): void {
    const deadline = setTimeout(() => {
      this.#waiting.delete(waiter)
      waiter.refuse(new Refusal('BACKEND_TIMEOUT', { cause: new Error('no connection to the backend became free') }))
    }, this.#limits.waitMs)
    this.#waiting.set(waiter, { since: performance.now(), deadline })
  }
}

const overloaded = (): Refusal => new Refusal('OVERLOADED', { headers: { 'retry-after': '1' } })
