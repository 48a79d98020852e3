import { type Clock, systemClock } from '../clock.js'
import { Listeners } from '../listeners.js'
import type { AnyRealtime } from '../realtime/realtime.js'
import { ReferenceCounts } from '../realtime/reference-counts.js'
import type { Subscription } from '../realtime/subscription.js'
import type { View } from '../realtime/view.js'
import { isOtherPublication, readBatch } from './batches.js'
import { FloorViews } from './floor-views.js'
import { type Freshness, FreshnessMonitor } from './freshness.js'
import type { PositionEvents } from './position-events.js'
import { PositionStore } from './position-store.js'

export interface PositionsOptions {
  readonly clock?: Clock
  /** A transmitter without an update for this long is removed. */
  readonly maxAgeMs?: number
}

const GLOBAL_CHANNEL = 'global:all'
const FLOOR_PREFIX = 'floor:'

/** The live positions of the watched floors. Every watched floor also receives `global:all`. */
export class Positions {
  readonly store: PositionStore
  readonly #realtime: AnyRealtime
  readonly #clock: Clock
  readonly #freshness: FreshnessMonitor
  readonly #views: FloorViews
  readonly #events = {
    'position-batch': new Listeners<PositionEvents['position-batch']>(),
    'ambient-batch': new Listeners<PositionEvents['ambient-batch']>(),
    publication: new Listeners<PositionEvents['publication']>(),
    freshness: new Listeners<PositionEvents['freshness']>(),
    removed: new Listeners<PositionEvents['removed']>(),
    gap: new Listeners<PositionEvents['gap']>()
  }
  readonly #subscriptions = new Map<string, Subscription>()
  readonly #channels = new ReferenceCounts(
    (channel) => this.#subscribe(channel),
    (channel) => this.#unsubscribe(channel)
  )
  #lastUpdateMs: number | null = null
  #badPayloads = 0
  #cancelSweep = (): void => undefined
  #releaseShown = (): void => undefined

  constructor(realtime: AnyRealtime, { clock = systemClock, maxAgeMs }: PositionsOptions = {}) {
    this.#realtime = realtime
    this.#clock = clock
    this.store = new PositionStore({ nowMs: () => clock.now(), ...(maxAgeMs !== undefined && { maxAgeMs }) })
    this.store.onRemoved((last) => this.#events.removed.emit(last))
    this.#views = new FloorViews(this.store)
    this.#freshness = new FreshnessMonitor(
      clock,
      (change) => this.#events.freshness.emit(change),
      (floorId) => realtime.state === 'online' && this.#isEmptyPart(floorId)
    )
    realtime.on('reset', () => this.clear())
  }

  /** Whether the positions of a watched floor are current, by their timestamps where they have one. */
  freshness(floorId: string | number): Freshness {
    return this.#freshness.state(String(floorId))
  }

  /** The age of the newest position of a watched floor; null before the first batch. */
  ageMs(floorId: string | number): number | null {
    return this.#freshness.ageMs(String(floorId))
  }

  /** Time of the last valid batch by the page's clock. */
  get lastUpdateMs(): number | null {
    return this.#lastUpdateMs
  }

  /** The number of malformed publications and entries. */
  get badPayloads(): number {
    return this.#badPayloads
  }

  /** Returns a function that removes the listener. */
  on<Name extends keyof PositionEvents>(name: Name, listener: (event: PositionEvents[Name]) => void): () => void {
    // TypeScript cannot relate the name to the type of its listeners through the table.
    return (this.#events[name] as unknown as Listeners<PositionEvents[Name]>).add(listener)
  }

  /** Subscribes to `global:all`, which every client of a building receives. Returns a function that releases it. */
  watchAll(): () => void {
    return this.#channels.acquire(GLOBAL_CHANNEL)
  }

  /** Subscribes to a floor and to `global:all`. Returns a function that releases both; the last release unsubscribes. */
  watchFloor(floorId: string | number): () => void {
    const releaseFloor = this.#channels.acquire(`${FLOOR_PREFIX}${floorId}`)
    const releaseAll = this.watchAll()
    return () => {
      releaseFloor()
      releaseAll()
    }
  }

  /** Replaces the floor of the previous call; null releases it. */
  showFloor(floorId: string | number | null): void {
    const releaseBefore = this.#releaseShown
    // The new floor first, so that the same floor is not unsubscribed in between.
    this.#releaseShown = floorId === null ? () => undefined : this.watchFloor(floorId)
    releaseBefore()
  }

  /**
   * Receives only the positions of a watched floor inside the rectangle, in the unit of the positions, or all for null. Shown
   * positions stay until those of the new rectangle have arrived. The relay decides: it may send more.
   */
  setView(floorId: string | number, view: View | null): void {
    const name = String(floorId)
    if (this.#views.want(name, view)) this.#changeView(name)
  }

  /** The part of a floor that is received; null for all of it. */
  view(floorId: string | number): View | null {
    return this.#views.granted(String(floorId))
  }

  /** Forgets all positions; watched floors stay subscribed. */
  clear(): void {
    this.store.clear()
    this.#freshness.clear()
    this.#lastUpdateMs = null
  }

  /** Stops all timers. */
  close(): void {
    this.#cancelSweep()
    this.clear()
  }

  #changeView(floorId: string): void {
    this.#subscriptions.get(FLOOR_PREFIX + floorId)?.setData(this.#views.dataOf(floorId))
  }

  #subscribe(channel: string): void {
    if (this.#subscriptions.size === 0) this.#sweepLater()
    const floorId = floorOf(channel)
    const data = floorId === null ? undefined : this.#views.dataOf(floorId)
    const subscription = this.#realtime.subscribe(channel, data === undefined ? {} : { data })
    this.#subscriptions.set(channel, subscription)
    subscription.on('publication', ({ data }) => this.#receive(channel, data))
    subscription.on('gap', () => this.#events.gap.emit({ channel }))
    if (floorId === null) return
    subscription.on('state', (state) => {
      if (state === 'subscribed') this.#subscribed(floorId, subscription.replyData)
    })
  }

  #unsubscribe(channel: string): void {
    this.#subscriptions.get(channel)?.unsubscribe()
    this.#subscriptions.delete(channel)
    const floorId = floorOf(channel)
    if (floorId !== null) {
      this.#views.forget(floorId)
      this.store.forgetFloor(floorId)
      this.#freshness.forget(floorId)
    }
    if (this.#subscriptions.size === 0) this.close()
  }

  #subscribed(floorId: string, data: unknown): void {
    const isOutdated = this.#views.subscribed(floorId, data)
    // Later, because the official client emits the positions of the reply after this event.
    queueMicrotask(() => {
      // No batch announces that nobody is there.
      if (this.#isEmptyPart(floorId)) this.#freshness.batch(floorId, [])
      // The screen has moved while the subscription was pending.
      if (isOutdated) this.#changeView(floorId)
    })
  }

  #isEmptyPart(floorId: string): boolean {
    return this.#views.granted(floorId) !== null && this.store.onFloor(floorId).length === 0
  }

  #receive(channel: string, payload: unknown): void {
    if (isOtherPublication(payload)) {
      this.#events.publication.emit({ channel, data: payload })
      return
    }
    const read = readBatch(payload)
    this.#badPayloads += read === null ? 1 : read.badEntries
    if (read === null || (read.batch.data.length === 0 && read.badEntries > 0)) return
    this.#lastUpdateMs = this.#clock.now()
    const { batch } = read
    if (batch.type === 'ambient-batch') {
      this.#events['ambient-batch'].emit(batch)
      return
    }
    const floorId = floorOf(channel)
    const added = this.store.add(batch.data)
    const data = floorId === null ? added : this.#views.received(floorId, added)
    if (floorId !== null) this.#freshness.batch(floorId, batch.data)
    if (data.length > 0 || batch.data.length === 0) this.#events['position-batch'].emit({ ...batch, data, floorId })
  }

  #sweepLater(): void {
    this.#cancelSweep = this.#clock.after(this.store.maxAgeMs / 4, () => {
      this.store.sweep()
      this.#sweepLater()
    })
  }
}

/** Null for a channel that is not a floor's. */
const floorOf = (channel: string): string | null =>
  channel.startsWith(FLOOR_PREFIX) ? channel.slice(FLOOR_PREFIX.length) : null
