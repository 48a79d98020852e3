import type { JoinOrLeave } from '../engine.js'
import { Pace } from '../pace.js'
import type { Channel, ChannelDependencies } from './channel.js'
import { pushToAll } from './subscription.js'

/** For each subscriber: 2,500 writes per second. */
const PRICE_MS = 0.4
const BURST_MS = 1000
/** Pushes in one write. */
const MAX_PUSHES = 40
/** Clients whose joins and leaves wait. Beyond it, those that wait longest are not announced. */
const MAX_WAITING = 10_000

/**
 * The joins and leaves of a channel. Those of one turn of the event loop are one write to each subscriber. The larger the
 * channel, the longer the next ones wait, and later events of a client replace its earlier ones then.
 */
export class JoinsAndLeaves {
  readonly #channel: Channel
  readonly #dependencies: ChannelDependencies
  readonly #pace = new Pace(BURST_MS)
  /** By the info of the client, in the order of their last events: the last one or the last two. */
  readonly #waiting = new Map<string, readonly JoinOrLeave[]>()
  #isScheduled = false
  #cancelTimer: (() => void) | null = null

  constructor(channel: Channel, dependencies: ChannelDependencies) {
    this.#channel = channel
    this.#dependencies = dependencies
  }

  add(kind: JoinOrLeave, info: string): void {
    const earlier = this.#waiting.get(info) ?? []
    // Deleted first, so that the client moves to the end: `info` may have changed between a leave and a join.
    this.#waiting.delete(info)
    this.#waiting.set(info, earlier.length === 1 ? [...earlier, kind] : [kind])
    if (this.#waiting.size > MAX_WAITING) this.#dropOldest()
    this.#schedule()
  }

  #dropOldest(): void {
    const [oldest = ''] = this.#waiting.keys()
    this.#waiting.delete(oldest)
    this.#dependencies.metrics.joinOrLeaveDropped(this.#channel.namespace)
  }

  /** The channel is closed. */
  clear(): void {
    this.#waiting.clear()
    this.#cancelTimer?.()
    this.#cancelTimer = null
    this.#isScheduled = false
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    const { monotonicMs, setTimer, atEndOfTurn } = this.#dependencies
    const wait = this.#pace.waitMs(monotonicMs())
    if (wait > 0) this.#cancelTimer = setTimer(this.#send, wait)
    else atEndOfTurn(this.#send)
  }

  readonly #send = (): void => {
    const { metrics, monotonicMs, deliveryFailed } = this.#dependencies
    const { name, namespace } = this.#channel
    this.#isScheduled = false
    this.#cancelTimer = null
    const receivers = this.#channel
      .subscriptions()
      .filter(({ wantsJoinLeave, isConfirmed }) => wantsJoinLeave && isConfirmed)
    if (receivers.length === 0) this.#waiting.clear()
    const pushes = this.#take().map(([kind, info]) => ({ kind, channel: name, info }))
    if (pushes.length === 0) return
    try {
      pushToAll(receivers, pushes, metrics, namespace)
    } catch (error) {
      deliveryFailed(this.#channel, error)
    }
    this.#pace.spend(receivers.length * PRICE_MS, monotonicMs())
    if (this.#waiting.size > 0) this.#schedule()
  }

  #take(): readonly (readonly [kind: JoinOrLeave, info: string])[] {
    const taken: (readonly [JoinOrLeave, string])[] = []
    for (const [info, kinds] of this.#waiting) {
      if (taken.length >= MAX_PUSHES) break
      for (const kind of kinds) taken.push([kind, info])
      this.#waiting.delete(info)
    }
    return taken
  }
}
