import type { PositionEntry } from '../../../schemas/realtime.js'
import { Listeners } from '../listeners.js'

export interface LivePosition {
  readonly entry: PositionEntry
  /** By the page's clock, which is the one that says how old it is. */
  readonly receivedAtMs: number
}

export interface PositionStoreOptions {
  readonly nowMs: () => number
  /** After so long without news of a transmitter it is forgotten. */
  readonly maxAgeMs?: number
}

const MAX_AGE_MS = 60_000

/** The newest position of every transmitter that was heard of lately. */
export class PositionStore {
  readonly maxAgeMs: number
  readonly #nowMs: () => number
  readonly #positions = new Map<string, LivePosition>()
  readonly #listeners = new Listeners<void>()

  constructor({ nowMs, maxAgeMs = MAX_AGE_MS }: PositionStoreOptions) {
    this.#nowMs = nowMs
    this.maxAgeMs = maxAgeMs
  }

  /** By transmitter. It is the living map: look at it in every frame, it costs nothing. */
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
    if (hasChanged) this.#listeners.tell()
  }

  /** Forgets what nobody has told anything new about. */
  sweep(): void {
    const oldestMs = this.#nowMs() - this.maxAgeMs
    this.#forget(({ receivedAtMs }) => receivedAtMs <= oldestMs)
  }

  /** A floor that is no longer listened to has no live positions. */
  forgetFloor(floorId: string | number): void {
    this.#forget(({ entry }) => String(entry.floorId) === String(floorId))
  }

  clear(): void {
    this.#forget(() => true)
  }

  #forget(isForgotten: (position: LivePosition) => boolean): void {
    let hasChanged = false
    for (const [key, position] of this.#positions) {
      if (isForgotten(position)) hasChanged = this.#positions.delete(key)
    }
    if (hasChanged) this.#listeners.tell()
  }
}

/** Batches may overtake each other on their way. Where one of two has no time, the one that came later counts. */
const isOlder = (entry: PositionEntry, held: PositionEntry | undefined): boolean =>
  held !== undefined && momentOf(entry.timestamp) < momentOf(held.timestamp)

/** NaN where there is none, which is neither before nor after anything. */
const momentOf = (timestamp: PositionEntry['timestamp']): number =>
  typeof timestamp === 'string' ? Date.parse(timestamp) : (timestamp ?? Number.NaN)
