import { type Options, UnauthorizedError } from 'centrifuge'
import type { AmbientBatch, PositionBatch } from '../../../schemas/realtime.js'
import { ApiError } from '../api/api-error.js'
import { type Clock, systemClock } from '../clock.js'
import { Listeners } from '../listeners.js'
import { readBatch } from './batches.js'
import { type Negotiation, negotiationOf } from './negotiation.js'
import { PositionStore } from './position-store.js'
import { ReferenceCounts } from './reference-counts.js'
import { type ConnectionHandlers, type ConnectionState, RelayConnection } from './relay-connection.js'

export interface RealtimeOptions {
  /** Requests `/api/negotiate`. */
  readonly negotiate: () => Promise<unknown>
  readonly clock?: Clock
  /** Positions without an update for this long are removed. */
  readonly maxAgeMs?: number
  /** Options of the centrifuge client, such as a WebSocket implementation or other delays. */
  readonly client?: Partial<Options>
  readonly random?: () => number
}

export interface RealtimeEvents {
  'position-batch': PositionBatch & { readonly floorId: string }
  'ambient-batch': AmbientBatch
  state: ConnectionState
  /** Publications of this channel are lost: the page should load its data again. */
  gap: { readonly channel: string }
  /** A permanent rejection of a channel, or of the connection if `channel` is null. `start` tries again. */
  refused: { readonly channel: string | null; readonly code: number | string; readonly message: string }
}

const GLOBAL_CHANNEL = 'global:all'
const FLOOR_PREFIX = 'floor:'

const MIN_DELAY_MS = 500
const MAX_DELAY_MS = 20_000

/** The relay rejects the token's signature: its secret has changed, and a new token will work. */
const INVALID_TOKEN = 3500

/** Live positions: stays connected to the relay and stores the latest positions. */
export class Realtime {
  readonly store: PositionStore
  readonly #options: RealtimeOptions
  readonly #clock: Clock
  readonly #events = {
    'position-batch': new Listeners<RealtimeEvents['position-batch']>(),
    'ambient-batch': new Listeners<RealtimeEvents['ambient-batch']>(),
    state: new Listeners<RealtimeEvents['state']>(),
    gap: new Listeners<RealtimeEvents['gap']>(),
    refused: new Listeners<RealtimeEvents['refused']>()
  }
  readonly #floors = new ReferenceCounts(
    (floorId) => this.#connection?.subscribe(FLOOR_PREFIX + floorId),
    (floorId) => {
      this.#connection?.unsubscribe(FLOOR_PREFIX + floorId)
      this.store.forgetFloor(floorId)
    }
  )
  #state: ConnectionState = 'offline'
  #lastUpdateMs: number | null = null
  #badPayloads = 0
  #isStarted = false
  #connection: RelayConnection | null = null
  /** The number of the current attempt; results of earlier ones are ignored. */
  #attempt = 0
  #failures = 0
  #cancelRetry = (): void => undefined
  #cancelSweep = (): void => undefined
  #releaseShown = (): void => undefined

  constructor(options: RealtimeOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.store = new PositionStore({
      nowMs: () => this.#clock.now(),
      ...(options.maxAgeMs !== undefined && { maxAgeMs: options.maxAgeMs })
    })
  }

  get state(): ConnectionState {
    return this.#state
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

  /** Connects, and reconnects automatically. After a rejection it must be called again. */
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
    for (const channel of [GLOBAL_CHANNEL, ...this.#floors.names.map((floorId) => FLOOR_PREFIX + floorId)])
      connection.subscribe(channel)
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
      if (attempt === this.#attempt) this.#reject(error.code, error.message)
      throw new UnauthorizedError(error.message)
    }
  }

  readonly #handlers: ConnectionHandlers = {
    state: (state) => {
      if (state === 'online') this.#failures = 0
      // Every retry starts as "connecting"; after a failure the state stays "offline" until one succeeds.
      if (state === 'connecting' && this.#state === 'offline') return
      this.#setState(state)
    },
    publication: (channel, data) => this.#receive(channel, data),
    gap: (channel) => this.#events.gap.emit({ channel }),
    rejected: (channel, code, message) => this.#events.refused.emit({ channel, code, message }),
    ended: (code, message) => {
      if (code === INVALID_TOKEN) this.#retryLater()
      else this.#reject(code, message)
    }
  }

  #receive(channel: string, payload: unknown): void {
    const read = readBatch(payload)
    this.#badPayloads += read === null ? 1 : read.badEntries
    if (read === null || (read.batch.data.length === 0 && read.badEntries > 0)) return
    this.#lastUpdateMs = this.#clock.now()
    const { batch } = read
    if (batch.type === 'ambient-batch') {
      this.#events['ambient-batch'].emit(batch)
      return
    }
    this.store.add(batch.data)
    this.#events['position-batch'].emit({ ...batch, floorId: channel.slice(FLOOR_PREFIX.length) })
  }

  #failed(error: unknown): void {
    if (isRejection(error)) this.#reject(error.code, error.message)
    else this.#retryLater()
  }

  #reject(code: number | string, message: string): void {
    this.#end()
    this.#events.refused.emit({ channel: null, code, message })
  }

  #retryLater(): void {
    this.#setState('offline')
    const ceiling = Math.min(MAX_DELAY_MS, MIN_DELAY_MS * 2 ** this.#failures)
    this.#failures += 1
    // Jitter, so that pages do not all reconnect at once after an outage.
    const delayMs = ceiling / 2 + (ceiling / 2) * (this.#options.random ?? Math.random)()
    this.#cancelRetry = this.#clock.after(delayMs, () => void this.#open())
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
    this.#failures = 0
    this.#cancelRetry()
    this.#connection?.close()
    this.#connection = null
    this.#setState('offline')
  }

  #setState(state: ConnectionState): void {
    if (state === this.#state) return
    this.#state = state
    this.#events.state.emit(state)
  }
}

/** Not signed in or not permitted: retrying does not help. */
const isRejection = (error: unknown): error is ApiError =>
  error instanceof ApiError && (error.status === 401 || error.status === 403)
