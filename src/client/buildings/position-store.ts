import type { PositionEntry } from '../../../schemas/realtime.js'
import { Listeners } from '../listeners.js'
import { entryTimeMs, positionTimeMs } from './entry-time.js'

export interface LivePosition {
  readonly entry: PositionEntry
  /** Time of arrival by the page's clock. */
  readonly receivedAtMs: number
  /** Time of the position: the entry's timestamp, but not after its arrival; the arrival without a timestamp. */
  readonly atMs: number
}

export interface PositionStoreOptions {
  readonly nowMs: () => number
  /** A transmitter without an update for this long is removed. */
  readonly maxAgeMs?: number
}

const MAX_AGE_MS = 60_000

/** The newest position of every transmitter. Stale positions stay, with their age, until they are removed. */
export class PositionStore {
  readonly maxAgeMs: number
  readonly #nowMs: () => number
  readonly #positions = new Map<string, LivePosition>()
  readonly #changeListeners = new Listeners<void>()
  readonly #removeListeners = new Listeners<LivePosition>()

  constructor({ nowMs, maxAgeMs = MAX_AGE_MS }: PositionStoreOptions) {
    this.#nowMs = nowMs
    this.maxAgeMs = maxAgeMs
  }

  /** By transmitter. This is the live map and not a copy, so it is cheap to read in every frame. */
  get positions(): ReadonlyMap<string, LivePosition> {
    return this.#positions
  }

  onChange(listener: () => void): () => void {
    return this.#changeListeners.add(listener)
  }

  /** Called with the last position of every transmitter that `sweep` or `forget` removes. */
  onRemoved(listener: (last: LivePosition) => void): () => void {
    return this.#removeListeners.add(listener)
  }

  get(transmitterId: string | number): LivePosition | undefined {
    return this.#positions.get(String(transmitterId))
  }

  /** The age of a transmitter's position. */
  ageMs(transmitterId: string | number): number | undefined {
    const position = this.get(transmitterId)
    return position && Math.max(this.#nowMs() - position.atMs, 0)
  }

  onFloor(floorId: string | number): LivePosition[] {
    return [...this.#positions.values()].filter(({ entry }) => String(entry.floorId) === String(floorId))
  }

  /** Adds the entries that are not older than the stored ones, and returns them. */
  add(entries: readonly PositionEntry[]): PositionEntry[] {
    const receivedAtMs = this.#nowMs()
    const added = entries.filter((entry) => {
      const key = String(entry.transmitterId)
      if (isOlder(entry, this.#positions.get(key)?.entry)) return false
      this.#positions.set(key, { entry, receivedAtMs, atMs: positionTimeMs(entry, receivedAtMs) })
      return true
    })
    if (added.length > 0) this.#changeListeners.emit()
    return added
  }

  /**
   * Removes transmitters without a recent update. The arrival decides and not the timestamp, so that a wrong clock makes
   * positions stale but does not remove them.
   */
  sweep(): void {
    const oldestMs = this.#nowMs() - this.maxAgeMs
    for (const last of this.#remove(({ receivedAtMs }) => receivedAtMs <= oldestMs)) this.#removeListeners.emit(last)
  }

  /** Removes the positions of a floor that is no longer subscribed to. */
  forgetFloor(floorId: string | number): void {
    this.#remove(({ entry }) => String(entry.floorId) === String(floorId))
  }

  /** Removes transmitters that are not received any more. */
  forget(transmitterIds: readonly string[]): void {
    const ids = new Set(transmitterIds)
    if (ids.size === 0) return
    const isForgotten = ({ entry }: LivePosition): boolean => ids.has(String(entry.transmitterId))
    for (const last of this.#remove(isForgotten)) this.#removeListeners.emit(last)
  }

  clear(): void {
    this.#remove(() => true)
  }

  #remove(isRemoved: (position: LivePosition) => boolean): LivePosition[] {
    const removed = [...this.#positions.values()].filter(isRemoved)
    for (const { entry } of removed) this.#positions.delete(String(entry.transmitterId))
    if (removed.length > 0) this.#changeListeners.emit()
    return removed
  }
}

/** Publications may arrive out of order. Without timestamps, the later arrival wins. */
const isOlder = (entry: PositionEntry, stored: PositionEntry | undefined): boolean =>
  stored !== undefined && entryTimeMs(entry) < entryTimeMs(stored)
