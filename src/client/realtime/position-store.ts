import type { PositionEntry } from '../../../schemas/realtime.js'
import { Listeners } from '../listeners.js'

export interface LivePosition {
  readonly entry: PositionEntry
  /** By the page's clock. */
  readonly receivedAtMs: number
}

export interface PositionStoreOptions {
  readonly nowMs: () => number
  /** Positions without an update for this long are removed. */
  readonly maxAgeMs?: number
}

const MAX_AGE_MS = 60_000

/** The latest position of every transmitter with a recent update. */
export class PositionStore {
  readonly maxAgeMs: number
  readonly #nowMs: () => number
  readonly #positions = new Map<string, LivePosition>()
  readonly #listeners = new Listeners<void>()

  constructor({ nowMs, maxAgeMs = MAX_AGE_MS }: PositionStoreOptions) {
    this.#nowMs = nowMs
    this.maxAgeMs = maxAgeMs
  }

  /** By transmitter. This is the live map and not a copy, so it is cheap to read in every frame. */
  get positions(): ReadonlyMap<string, LivePosition> {
    return this.#positions
  }

  onChange(listener: () => void): () => void {
    return this.#listeners.add(listener)
  }

  get(transmitterId: string | number): LivePosition | undefined {
    return this.#positions.get(String(transmitterId))
  }

  onFloor(floorId: string | number): LivePosition[] {
    return [...this.#positions.values()].filter(({ entry }) => String(entry.floorId) === String(floorId))
  }

  add(entries: readonly PositionEntry[]): void {
    const receivedAtMs = this.#nowMs()
    let hasChanged = false
    for (const entry of entries) {
      const key = String(entry.transmitterId)
      if (isOlder(entry, this.#positions.get(key)?.entry)) continue
      this.#positions.set(key, { entry, receivedAtMs })
      hasChanged = true
    }
    if (hasChanged) this.#listeners.emit()
  }

  /** Removes positions without a recent update. */
  sweep(): void {
    const oldestMs = this.#nowMs() - this.maxAgeMs
    this.#remove(({ receivedAtMs }) => receivedAtMs <= oldestMs)
  }

  /** Removes the positions of a floor that is no longer subscribed to. */
  forgetFloor(floorId: string | number): void {
    this.#remove(({ entry }) => String(entry.floorId) === String(floorId))
  }

  clear(): void {
    this.#remove(() => true)
  }

  #remove(isRemoved: (position: LivePosition) => boolean): void {
    let hasChanged = false
    for (const [key, position] of this.#positions) {
      if (isRemoved(position)) hasChanged = this.#positions.delete(key)
    }
    if (hasChanged) this.#listeners.emit()
  }
}

/** Batches may arrive out of order. Without timestamps, the later arrival wins. */
const isOlder = (entry: PositionEntry, stored: PositionEntry | undefined): boolean =>
  stored !== undefined && millisecondsOf(entry.timestamp) < millisecondsOf(stored.timestamp)

/** NaN without a timestamp; comparisons with it are false. */
const millisecondsOf = (timestamp: PositionEntry['timestamp']): number =>
  typeof timestamp === 'string' ? Date.parse(timestamp) : (timestamp ?? Number.NaN)
