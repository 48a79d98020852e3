import { Refusal } from '../errors.js'

/** Somebody who wants a connection to the backend. */
export interface Waiter {
  /** Holds a connection for as long as its sender likes to take: the body is passed on as it comes. */
  readonly streams: boolean
  /** Its turn. From now on it holds a slot, until it calls `leave`. */
  run(waitedMs: number): void
  /** Its turn did not come in time. */
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
 * Who may use which of the backend's connections, and who waits for one. The pool has a queue of its own, but one without
 * end, without a deadline, and that nobody can leave.
 */
export class BackendSlots {
  readonly #limits: SlotLimits
  /** Senders that never finish must leave connections to everybody else. */
  readonly #maxStreams: number
  readonly #waiting = new Map<Waiter, Waiting>()
  #used = 0
  #streams = 0

  constructor(limits: SlotLimits) {
    this.#limits = limits
    this.#maxStreams = Math.max(1, Math.floor(limits.connections / 2))
  }

  get inFlight(): number {
    return this.#used + this.#waiting.size
  }

  /** Runs it at once, or when its turn comes. Throws where too many wait already. */
  enter(waiter: Waiter): void {
    if (this.inFlight >= this.#limits.inFlight) throw new Refusal('OVERLOADED', { headers: { 'retry-after': '1' } })
    if (this.#isFree(waiter)) {
      this.#take(waiter)
      waiter.run(0)
    } else this.#wait(waiter)
  }

  /** For one that still waits. */
  giveUp(waiter: Waiter): void {
    clearTimeout(this.#waiting.get(waiter)?.deadline)
    this.#waiting.delete(waiter)
  }

  /** For one that has run. */
  leave({ streams }: Waiter): void {
    this.#used -= 1
    if (streams) this.#streams -= 1
    for (const [waiter, { since }] of this.#waiting) {
      if (!this.#isFree(waiter)) continue
      this.giveUp(waiter)
      this.#take(waiter)
      waiter.run(performance.now() - since)
      return
    }
  }

  #isFree({ streams }: Waiter): boolean {
    return this.#used < this.#limits.connections && !(streams && this.#streams >= this.#maxStreams)
  }

  #take({ streams }: Waiter): void {
    this.#used += 1
    if (streams) this.#streams += 1
  }

  #wait(waiter: Waiter): void {
    const deadline = setTimeout(() => {
      this.#waiting.delete(waiter)
      waiter.refuse(new Refusal('BACKEND_TIMEOUT', { cause: new Error('no connection to the backend became free') }))
    }, this.#limits.waitMs)
    this.#waiting.set(waiter, { since: performance.now(), deadline })
  }
}
