import type { PositionEntry } from '../../../schemas/realtime.js'
import type { Clock } from '../clock.js'
import { positionTimeMs } from './entry-time.js'

export type Freshness =
  /** Batches arrive as usual. */
  | 'live'
  /** No batch for twice the usual interval, and at least 5 s. */
  | 'stale'
  /** Not subscribed, or no batch yet. */
  | 'unknown'

export interface FreshnessChange {
  readonly floorId: string
  readonly state: Freshness
  /** The age of the newest position; null if the state is `unknown`. */
  readonly ageMs: number | null
}

const MIN_STALE_MS = 5000
/** A longer gap is an outage. */
const MAX_GAP_MS = 3_600_000
const GAPS = 20

interface Floor {
  /** Time of the newest position. */
  newestMs: number
  /** Between the newest positions of consecutive batches, latest last. */
  readonly gapsMs: number[]
  /** The state that was reported last. */
  state: Freshness
  cancelCheck: () => void
}

/**
 * The freshness of every floor, by the timestamps of its entries, or their arrival without timestamps. A batch that
 * contains nothing newer than before does not count: a publisher that repeats old positions is stale.
 */
export class FreshnessMonitor {
  readonly #floors = new Map<string, Floor>()
  readonly #clock: Clock
  readonly #report: (change: FreshnessChange) => void
  readonly #mayBeSilent: (floorId: string) => boolean

  /** `mayBeSilent`: no batches are expected, because the received part of the floor is empty. */
  constructor(
    clock: Clock,
    report: (change: FreshnessChange) => void,
    mayBeSilent: (floorId: string) => boolean = () => false
  ) {
    this.#clock = clock
    this.#report = report
    this.#mayBeSilent = mayBeSilent
  }

  state(floorId: string): Freshness {
    const floor = this.#floors.get(floorId)
    if (floor === undefined) return 'unknown'
    const isRecent = this.#clock.now() - floor.newestMs < staleAfterMs(floor)
    return isRecent || this.#mayBeSilent(floorId) ? 'live' : 'stale'
  }

  ageMs(floorId: string): number | null {
    const floor = this.#floors.get(floorId)
    return floor === undefined ? null : Math.max(this.#clock.now() - floor.newestMs, 0)
  }

  /** An empty batch is as new as its arrival. */
  batch(floorId: string, entries: readonly PositionEntry[]): void {
    const nowMs = this.#clock.now()
    const newestMs = entries.reduce(
      (newest, entry) => Math.max(newest, positionTimeMs(entry, nowMs)),
      entries.length === 0 ? nowMs : Number.NEGATIVE_INFINITY
    )
    const floor = this.#floors.get(floorId)
    if (floor === undefined) {
      this.#floors.set(floorId, { newestMs, gapsMs: [], state: 'unknown', cancelCheck: () => undefined })
    } else if (newestMs > floor.newestMs) {
      floor.gapsMs.push(Math.min(newestMs - floor.newestMs, MAX_GAP_MS))
      if (floor.gapsMs.length > GAPS) floor.gapsMs.shift()
      floor.newestMs = newestMs
    } else return
    this.#check(floorId)
  }

  forget(floorId: string): void {
    const floor = this.#floors.get(floorId)
    if (floor === undefined) return
    floor.cancelCheck()
    this.#floors.delete(floorId)
    this.#report({ floorId, state: 'unknown', ageMs: null })
  }

  clear(): void {
    for (const floorId of [...this.#floors.keys()]) this.forget(floorId)
  }

  /** Reports a changed state, and checks again when a live floor would become stale. */
  #check(floorId: string): void {
    const floor = this.#floors.get(floorId)
    if (floor === undefined) return
    floor.cancelCheck()
    const state = this.state(floorId)
    if (state === 'live') {
      const leftMs = floor.newestMs + staleAfterMs(floor) - this.#clock.now()
      const inMs = leftMs > 0 ? leftMs : MIN_STALE_MS
      floor.cancelCheck = this.#clock.after(inMs, () => this.#check(floorId))
    }
    if (state === floor.state) return
    floor.state = state
    this.#report({ floorId, state, ageMs: this.ageMs(floorId) })
  }
}

const staleAfterMs = ({ gapsMs }: Floor): number => Math.max(2 * usualIntervalMs(gapsMs), MIN_STALE_MS)

/** The second longest of the recent gaps: one outage does not make the usual interval longer. */
const usualIntervalMs = (gapsMs: readonly number[]): number => {
  const [longest = 0, second = longest] = [...gapsMs].sort((one, other) => other - one)
  return second
}
