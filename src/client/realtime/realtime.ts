import { type Options, UnauthorizedError } from 'centrifuge'
import type { AmbientBatch, PositionBatch } from '../../../schemas/realtime.js'
import { ApiError } from '../api/api-error.js'
import { type Clock, systemClock } from '../clock.js'
import { Listeners } from '../listeners.js'
import { readBatch } from './batches.js'
import { Counted } from './counted.js'
import { type ConnectionState, Link, type LinkWatch } from './link.js'
import { type Negotiation, negotiationOf } from './negotiation.js'
import { PositionStore } from './position-store.js'

export interface RealtimeOptions {
  /** Asks `/api/negotiate`; the answer is looked at here. */
  readonly negotiate: () => Promise<unknown>
  readonly clock?: Clock
  /** After so long without news of a transmitter it is forgotten. */
  readonly maxAgeMs?: number
  /** For the official client: a WebSocket where there is none, other delays. */
  readonly client?: Partial<Options>
  readonly random?: () => number
}

export interface RealtimeEvents {
  'position-batch': PositionBatch & { readonly floorId: string }
  'ambient-batch': AmbientBatch
  state: ConnectionState
  /** Publications of this channel are lost: what is shown should be read anew. */
  gap: { readonly channel: string }
  /** Refused for good: a channel, or the connection where there is none. `start` tries again. */
  refused: { readonly channel: string | null; readonly code: number | string; readonly message: string }
}

const EVERYBODY = 'global:all'
const FLOOR = 'floor:'

const MIN_DELAY_MS = 500
const MAX_DELAY_MS = 20_000

/** The relay does not know the token's signature: its secret has changed, and a new token will do. */
const INVALID_TOKEN = 3500

/** Live positions. It connects, stays connected, and keeps what it hears. */
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
  readonly #floors = new Counted(
    (floorId) => this.#link?.join(FLOOR + floorId),
    (floorId) => {
      this.#link?.leave(FLOOR + floorId)
      this.store.forgetFloor(floorId)
    }
  )
  #state: ConnectionState = 'offline'
  #lastUpdateMs: number | null = null
  #badPayloads = 0
  #isStarted = false
  #link: Link | null = null
  /** Which attempt is the present one: what others still bring is of no interest. */
  #attempt = 0
  #failures = 0
  #callOffRetry = (): void => undefined
  #callOffSweep = (): void => undefined
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

  /** When the last good batch came, by the page's clock. */
  get lastUpdateMs(): number | null {
    return this.#lastUpdateMs
  }

  /** How many publications were no batches, and how many entries of batches were none. */
  get badPayloads(): number {
    return this.#badPayloads
  }

  /** The answer takes the listener off again. */
  on<Name extends keyof RealtimeEvents>(name: Name, listener: (event: RealtimeEvents[Name]) => void): () => void {
    // The listeners under a name are those of its event, which the compiler cannot see through the table.
    return (this.#events[name] as unknown as Listeners<RealtimeEvents[Name]>).add(listener)
  }

  /** Connects, and comes back by itself whenever the connection breaks. Once the service has said no, it needs a new start. */
  start(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    this.#become('connecting')
    this.#callOffSweep()
    this.#sweepLater()
    void this.#open()
  }

  /** What is shown of live positions is over with it. Floors that are wanted stay wanted. */
  stop(): void {
    this.#end()
    this.#callOffSweep()
    this.store.clear()
  }

  /** Listens to a floor for as long as anybody wants it. The answer takes this wish back. */
  watchFloor(floorId: string | number): () => void {
    return this.#floors.want(String(floorId))
  }

  /** Listens to this floor instead of the one that was shown before; to none with null. */
  showFloor(floorId: string | number | null): void {
    const releaseBefore = this.#releaseShown
    // The new one first: a floor that is shown again is not left in between.
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
    this.#link?.close()
    const link = new Link(
      negotiation,
      () => this.#renewedToken(negotiation.url),
      this.#watch,
      this.#options.client ?? {}
    )
    this.#link = link
    for (const channel of [EVERYBODY, ...this.#floors.names.map((floorId) => FLOOR + floorId)]) link.join(channel)
    link.open()
  }

  /** Asked for by the official client before every token ends. The relay may have moved meanwhile. */
  async #renewedToken(url: string): Promise<string> {
    const attempt = this.#attempt
    try {
      const negotiation = negotiationOf(await this.#options.negotiate())
      if (negotiation.url !== url && attempt === this.#attempt) queueMicrotask(() => this.#connect(negotiation))
      return negotiation.token
    } catch (error) {
      if (!isNo(error)) throw error
      if (attempt === this.#attempt) this.#refused(error.code, error.message)
      throw new UnauthorizedError(error.message)
    }
  }

  readonly #watch: LinkWatch = {
    state: (state) => {
      if (state === 'online') this.#failures = 0
      // Each try begins as "connecting"; after one has failed that is no news until one succeeds.
      if (state === 'connecting' && this.#state === 'offline') return
      this.#become(state)
    },
    publication: (channel, data) => this.#heard(channel, data),
    gap: (channel) => this.#events.gap.tell({ channel }),
    refused: (channel, code, message) => this.#events.refused.tell({ channel, code, message }),
    ended: (code, message) => {
      if (code === INVALID_TOKEN) this.#retryLater()
      else this.#refused(code, message)
    }
  }

  #heard(channel: string, payload: unknown): void {
    const read = readBatch(payload)
    this.#badPayloads += read === null ? 1 : read.badEntries
    if (read === null || (read.batch.data.length === 0 && read.badEntries > 0)) return
    this.#lastUpdateMs = this.#clock.now()
    const { batch } = read
    if (batch.type === 'ambient-batch') {
      this.#events['ambient-batch'].tell(batch)
      return
    }
    this.store.add(batch.data)
    this.#events['position-batch'].tell({ ...batch, floorId: channel.slice(FLOOR.length) })
  }

  #failed(error: unknown): void {
    if (isNo(error)) this.#refused(error.code, error.message)
    else this.#retryLater()
  }

  #refused(code: number | string, message: string): void {
    this.#end()
    this.#events.refused.tell({ channel: null, code, message })
  }

  #retryLater(): void {
    this.#become('offline')
    const ceiling = Math.min(MAX_DELAY_MS, MIN_DELAY_MS * 2 ** this.#failures)
    this.#failures += 1
    // Not all pages at once, after the service was away.
    const delayMs = ceiling / 2 + (ceiling / 2) * (this.#options.random ?? Math.random)()
    this.#callOffRetry = this.#clock.after(delayMs, () => void this.#open())
  }

  #sweepLater(): void {
    this.#callOffSweep = this.#clock.after(this.store.maxAgeMs / 4, () => {
      this.store.sweep()
      this.#sweepLater()
    })
  }

  #end(): void {
    this.#isStarted = false
    this.#attempt += 1
    this.#failures = 0
    this.#callOffRetry()
    this.#link?.close()
    this.#link = null
    this.#become('offline')
  }

  #become(state: ConnectionState): void {
    if (state === this.#state) return
    this.#state = state
    this.#events.state.tell(state)
  }
}

/** Nobody is signed in, or they may not: asking again would not help. */
const isNo = (error: unknown): error is ApiError =>
  error instanceof ApiError && (error.status === 401 || error.status === 403)
