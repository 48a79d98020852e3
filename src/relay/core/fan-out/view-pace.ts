import type { MaybePromise } from '../maybe-promise.js'
import { Pace } from '../pace.js'
import type { Subscriber } from './subscription.js'

/** For each key of the channel. A snapshot takes about a tenth of that. */
const PRICE_MS = 0.005
/** A client may subscribe to several channels at once. */
const BURST_MS = 1000

/** Clients that move their views again and again wait for the next snapshot, so that others are served in between. */
export class ViewPace {
  readonly #monotonicMs: () => number
  readonly #setTimer: (task: () => void, ms: number) => () => void
  readonly #paces = new WeakMap<Subscriber, Pace>()

  constructor(monotonicMs: () => number, setTimer: (task: () => void, ms: number) => () => void) {
    this.#monotonicMs = monotonicMs
    this.#setTimer = setTimer
  }

  /** Resolves when the client may have its next snapshot. */
  turnOf(subscriber: Subscriber): MaybePromise<void> {
    const wait = this.#paces.get(subscriber)?.waitMs(this.#monotonicMs()) ?? 0
    if (wait > 0) return new Promise((resolve) => void this.#setTimer(resolve, wait))
  }

  /** The client has received a snapshot of a channel with so many keys. */
  spend(subscriber: Subscriber, keys: number): void {
    const pace = this.#paces.get(subscriber) ?? new Pace(BURST_MS)
    this.#paces.set(subscriber, pace)
    pace.spend(keys * PRICE_MS, this.#monotonicMs())
  }
}
