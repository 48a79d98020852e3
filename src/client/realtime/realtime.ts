import { type Options, UnauthorizedError } from 'centrifuge'
import { ApiError } from '../api/api-error.js'
import { type Clock, systemClock } from '../clock.js'
import { Listeners } from '../listeners.js'
import { isOtherPublication, readBatch } from './batches.js'
import { FloorViews } from './floor-views.js'
import { type Freshness, FreshnessMonitor } from './freshness.js'
import type { LiveMap, LiveMapOptions } from './live-map.js'
import { LiveMaps } from './live-maps.js'
import { type Negotiation, negotiationOf } from './negotiation.js'
import { PositionStore } from './position-store.js'
import type { RealtimeEvents } from './realtime-events.js'
import { ReferenceCounts } from './reference-counts.js'
import { type ConnectionHandlers, type ConnectionState, RelayConnection, RpcError } from './relay-connection.js'
import { Retries } from './retries.js'
import type { View } from './view.js'

export interface RealtimeOptions {
  /** Requests `/api/negotiate`. */
  readonly negotiate: () => Promise<unknown>
  readonly clock?: Clock
  /** A transmitter without an update for this long is removed. */
  readonly maxAgeMs?: number
  /** Options of the centrifuge client, such as a WebSocket implementation or other delays. */
  readonly client?: Partial<Options>
  readonly random?: () => number
}

const GLOBAL_CHANNEL = 'global:all'
const FLOOR_PREFIX = 'floor:'

/** The name of the connection among the retries; the others are channels. */
const CONNECTION = ''

/**
 * Codes after which the official client gives up, and a new negotiation may help: invalid token (the secret has changed),
 * stale, disconnected by an operator, connection limit, channel limit.
 */
const RETRYABLE_DISCONNECTS: ReadonlySet<number> = new Set([3500, 3502, 3503, 3504, 3505])
/** Limit exceeded, and unsubscribed by an operator. */
const RETRYABLE_UNSUBSCRIBES: ReadonlySet<number> = new Set([106, 2000])

/** Live positions: stays connected to the relay and stores the latest positions. */
export class Realtime {
  readonly store: PositionStore
  readonly #options: RealtimeOptions
  readonly #clock: Clock
  readonly #freshness: FreshnessMonitor
  readonly #views: FloorViews
  readonly #maps = new LiveMaps()
  readonly #retries: Retries
  readonly #events = {
    'position-batch': new Listeners<RealtimeEvents['position-batch']>(),
    'ambient-batch': new Listeners<RealtimeEvents['ambient-batch']>(),
    publication: new Listeners<RealtimeEvents['publication']>(),
    state: new Listeners<RealtimeEvents['state']>(),
    freshness: new Listeners<RealtimeEvents['freshness']>(),
    removed: new Listeners<RealtimeEvents['removed']>(),
    gap: new Listeners<RealtimeEvents['gap']>(),
    refused: new Listeners<RealtimeEvents['refused']>()
  }
  readonly #floors = new ReferenceCounts(
    (floorId) => this.#connection?.subscribe(FLOOR_PREFIX + floorId, this.#views.dataOf(floorId)),
    (floorId) => {
      this.#connection?.unsubscribe(FLOOR_PREFIX + floorId)
      this.#views.forget(floorId)
      this.store.forgetFloor(floorId)
      this.#freshness.forget(floorId)
    }
  )
  #state: ConnectionState = 'offline'
  #lastUpdateMs: number | null = null
  #badPayloads = 0
  #isStarted = false
  #connection: RelayConnection | null = null
  /** The number of the current attempt; results of earlier ones are ignored. */
  #attempt = 0
  #cancelSweep = (): void => undefined
  #releaseShown = (): void => undefined

  constructor(options: RealtimeOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.store = new PositionStore({
      nowMs: () => this.#clock.now(),
      ...(options.maxAgeMs !== undefined && { maxAgeMs: options.maxAgeMs })
    })
    this.#retries = new Retries(this.#clock, options.random)
    this.store.onRemoved((last) => this.#events.removed.emit(last))
    this.#views = new FloorViews(this.store)
    this.#freshness = new FreshnessMonitor(
      this.#clock,
      (change) => this.#events.freshness.emit(change),
      (floorId) => this.#state === 'online' && this.#isEmptyPart(floorId)
    )
  }

  /** The connection to the relay. `freshness` says whether positions arrive. */
  get state(): ConnectionState {
    return this.#state
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
  on<Name extends keyof RealtimeEvents>(name: Name, listener: (event: RealtimeEvents[Name]) => void): () => void {
    // TypeScript cannot relate the name to the type of its listeners through the table.
    return (this.#events[name] as unknown as Listeners<RealtimeEvents[Name]>).add(listener)
  }

  /** Connects, and reconnects automatically. After a rejection that is not retryable it must be called again. */
  start(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    this.#setState('connecting')
    this.#cancelSweep()
    this.#sweepLater()
    void this.#open()
  }

  /** Disconnects and removes all positions. Watched floors are subscribed to again by the next `start`. */
  stop(): void {
    this.#end()
    this.#cancelSweep()
    this.store.clear()
    this.#freshness.clear()
  }

  /** Connects now instead of after the next delay. The positions stay. */
  reconnect(): void {
    this.#end()
    this.start()
  }

  /** Subscribes to a floor. Returns a function that releases it; the last release unsubscribes. */
  watchFloor(floorId: string | number): () => void {
    return this.#floors.acquire(String(floorId))
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
    if (this.#views.want(name, view)) this.#connection?.changeData(FLOOR_PREFIX + name, this.#views.dataOf(name))
  }

  /** The part of a floor that is received; null for all of it. */
  view(floorId: string | number): View | null {
    return this.#views.granted(String(floorId))
  }

  /** Opens a map channel. Handles of the same channel share one subscription; the last `close` ends it. */
  map<Value = unknown>(channel: string, options: LiveMapOptions = {}): LiveMap<Value> {
    return this.#maps.open<Value>(channel, options)
  }

  /**
   * Calls a method of the backend, if the relay has an RPC proxy. Waits while the client is connecting. Rejects with an
   * `RpcError` if the backend or the relay rejects the call, or if there is no connection.
   */
  async rpc(method: string, data: unknown): Promise<unknown> {
    if (this.#connection === null) throw new RpcError({ message: 'not connected' })
    return this.#connection.rpc(method, data)
  }

  async #open(): Promise<void> {
    this.#attempt += 1
    const attempt = this.#attempt
    try {
      const negotiation = negotiationOf(await this.#options.negotiate())
      if (attempt === this.#attempt) this.#connect(negotiation)
    } catch (error) {
      if (attempt === this.#attempt) this.#failed(error)
    }
  }

  #connect(negotiation: Negotiation): void {
    this.#connection?.close()
    const connection = new RelayConnection(
      negotiation,
      () => this.#renewToken(negotiation.url),
      this.#handlers,
      this.#options.client ?? {}
    )
    this.#connection = connection
    connection.subscribe(GLOBAL_CHANNEL)
    for (const floorId of this.#floors.names) connection.subscribe(FLOOR_PREFIX + floorId, this.#views.dataOf(floorId))
    this.#maps.connect(connection)
    connection.open()
  }

  /** Called by the centrifuge client before a token expires. The relay's address may have changed. */
  async #renewToken(url: string): Promise<string> {
    const attempt = this.#attempt
    try {
      const negotiation = negotiationOf(await this.#options.negotiate())
      if (negotiation.url !== url && attempt === this.#attempt) queueMicrotask(() => this.#connect(negotiation))
      return negotiation.token
    } catch (error) {
      if (!isRejection(error)) throw error
      if (attempt === this.#attempt) this.#reject(error)
      throw new UnauthorizedError(error.message)
    }
  }

  readonly #handlers: ConnectionHandlers = {
    state: (state) => {
      if (state === 'online') this.#retries.succeeded(CONNECTION)
      // Every retry starts as "connecting"; after a failure the state stays "offline" until one succeeds.
      if (state === 'connecting' && this.#state === 'offline') return
      this.#setState(state)
    },
    publication: (channel, data) => this.#receive(channel, data),
    subscribed: (channel, data) => {
      this.#retries.succeeded(channel)
      const floorId = floorOf(channel)
      if (floorId === null) return
      const isOutdated = this.#views.subscribed(floorId, data)
      // Later, because the official client emits the positions of the reply after this event.
      queueMicrotask(() => {
        // No batch announces that nobody is there.
        if (this.#isEmptyPart(floorId)) this.#freshness.batch(floorId, [])
        // The screen has moved while the subscription was pending.
        if (isOutdated) this.#connection?.changeData(channel, this.#views.dataOf(floorId))
      })
    },
    gap: (channel) => this.#events.gap.emit({ channel }),
    rejected: (channel, code, message) => {
      const retryable = RETRYABLE_UNSUBSCRIBES.has(code)
      if (retryable) this.#retries.later(channel, () => this.#connection?.resubscribe(channel))
      this.#events.refused.emit({ channel, code, message, retryable })
    },
    ended: (code, message) => {
      const retryable = RETRYABLE_DISCONNECTS.has(code)
      if (retryable) this.#retryLater()
      else this.#end()
      this.#events.refused.emit({ channel: null, code, message, retryable })
    }
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

  #failed(error: unknown): void {
    if (isRejection(error)) this.#reject(error)
    else this.#retryLater()
  }

  #reject({ code, message }: ApiError): void {
    this.#end()
    this.#events.refused.emit({ channel: null, code, message, retryable: false })
  }

  #retryLater(): void {
    this.#setState('offline')
    this.#retries.later(CONNECTION, () => void this.#open())
  }

  #sweepLater(): void {
    this.#cancelSweep = this.#clock.after(this.store.maxAgeMs / 4, () => {
      this.store.sweep()
      this.#sweepLater()
    })
  }

  #end(): void {
    this.#isStarted = false
    this.#attempt += 1
    this.#retries.clear()
    this.#connection?.close()
    this.#connection = null
    this.#maps.connect(null)
    this.#setState('offline')
  }

  #setState(state: ConnectionState): void {
    if (state === this.#state) return
    this.#state = state
    this.#events.state.emit(state)
  }
}

/** Null for a channel that is not a floor's. */
const floorOf = (channel: string): string | null =>
  channel.startsWith(FLOOR_PREFIX) ? channel.slice(FLOOR_PREFIX.length) : null

/** Not signed in or not permitted: retrying does not help. */
const isRejection = (error: unknown): error is ApiError =>
  error instanceof ApiError && (error.status === 401 || error.status === 403)
