import type { Clocks } from '../core/clocks.js'
import type {
  ExpiredKeys,
  HistoryRange,
  MapChanged,
  MapRemoval,
  MapSuppression,
  Maps,
  MapWrite,
  RetainedPage,
  StatePage,
  StateRange
} from '../core/engine.js'
import type { MapStorageOptions } from '../core/options.js'
import { NO_POSITION, type Position, type Publication } from '../core/publication.js'
import { TimeSlice } from '../core/time-slice.js'
import { hasStream, MapEntry, MemoryMap } from './memory-map.js'
import { IdempotencyCache } from './memory-stream.js'

export interface MemoryMapsDependencies extends Clocks {
  readonly newEpoch: () => string
  /** Maps with subscribers stay. */
  readonly hasSubscribers: (channel: string) => boolean
  readonly deliver: (channel: string, change: Publication, epoch: string) => void
}

/** Keys per step of a long read. */
const KEYS_PER_STEP = 1000

/** Maps within one process. All changes take effect synchronously. */
export class MemoryMaps implements Maps {
  readonly #dependencies: MemoryMapsDependencies
  readonly #maps = new Map<string, MemoryMap>()
  readonly #results = new IdempotencyCache()
  #isExpiring = false

  constructor(dependencies: MemoryMapsDependencies) {
    this.#dependencies = dependencies
  }

  write(channel: string, write: MapWrite, options: MapStorageOptions): MapChanged | 'full' {
    const nowMs = this.#dependencies.monotonicMs()
    const { key, idempotencyKey, version, versionEpoch, keyMode } = write
    const known = this.#knownResult(channel, idempotencyKey, nowMs)
    if (known !== undefined) return known
    const map = this.#map(channel, options, nowMs)
    if (version > 0 && map.isOutdated(key, version, versionEpoch)) return suppressed(map, 'version')
    const existing = map.get(key)
    if (existing !== undefined && keyMode === 'if_new') {
      if (write.renews) map.renew(existing, nowMs)
      return suppressed(map, 'key_exists')
    }
    if (existing === undefined && keyMode === 'if_exists') return suppressed(map, 'key_not_found')
    if (existing === undefined && map.size >= options.maxKeys) return 'full'

    const entry = new MapEntry(write, nextOffset(map), this.#dependencies.nowMs())
    map.write(entry, versionEpoch, nowMs)
    this.#deliver(channel, map, withTrace(entry, write.trace), existing)
    return this.#changed(channel, map, idempotencyKey, nowMs)
  }

  removeKey(channel: string, { key, idempotencyKey }: MapRemoval, options: MapStorageOptions): MapChanged {
    const nowMs = this.#dependencies.monotonicMs()
    const known = this.#knownResult(channel, idempotencyKey, nowMs)
    if (known !== undefined) return known
    const map = this.#map(channel, options, nowMs)
    const entry = map.get(key)
    if (entry === undefined) return suppressed(map, 'key_not_found')
    this.#remove(channel, map, entry, nowMs)
    return this.#changed(channel, map, idempotencyKey, nowMs)
  }

  /**
   * A long read gives way to other work. It may then contain entries that were written after its position, which the stream
   * brings again, and lack entries whose removal the stream brings.
   */
  async readState(channel: string, { after, limit }: StateRange, options: MapStorageOptions): Promise<StatePage> {
    const map = this.#map(channel, options, this.#dependencies.monotonicMs())
    const position = positionOf(map)
    const slice = new TimeSlice(this.#dependencies.monotonicMs)
    const entries: Publication[] = []
    let left = limit < 0 ? Number.POSITIVE_INFINITY : limit
    let last = after
    while (left > 0) {
      const keys = map.keys.after(last, Math.min(left, KEYS_PER_STEP))
      for (const key of keys) {
        const entry = map.get(key)
        if (entry !== undefined) entries.push(entry)
      }
      last = keys[keys.length - 1] ?? last
      left -= keys.length
      if (keys.length < KEYS_PER_STEP) break
      if (slice.isOver) await slice.next()
    }
    const isLast = limit === 0 || map.keys.after(last, 1).length === 0
    return { epoch: position.epoch, offset: position.offset, entries, next: isLast ? '' : last }
  }

  async readKey(channel: string, key: string, options: MapStorageOptions): Promise<Publication | null> {
    return this.#existing(channel, options)?.get(key) ?? null
  }

  async readStream(channel: string, range: HistoryRange, options: MapStorageOptions): Promise<RetainedPage> {
    const nowMs = this.#dependencies.monotonicMs()
    const { hasStream, stream } = this.#map(channel, options, nowMs)
    if (!hasStream) return { ...NO_POSITION, publications: [], oldest: 1 }
    const { epoch, offset } = stream.position
    const publications = stream.read(range, nowMs)
    return { epoch, offset, publications, oldest: stream.oldestOffset }
  }

  async count(channel: string, options: MapStorageOptions): Promise<number> {
    return this.#existing(channel, options)?.size ?? 0
  }

  async clear(channel: string): Promise<void> {
    this.#maps.delete(channel)
  }

  /** Gives way to other work if many keys have expired. */
  async expire(): Promise<ExpiredKeys> {
    if (this.#isExpiring) return { keys: 0, lagMs: 0 }
    this.#isExpiring = true
    try {
      return await this.#expireInSlices(new TimeSlice(this.#dependencies.monotonicMs))
    } finally {
      this.#isExpiring = false
    }
  }

  async #expireInSlices(slice: TimeSlice): Promise<ExpiredKeys> {
    let keys = 0
    let lagMs = 0
    for (const [channel, map] of this.#maps) {
      for (;;) {
        const nowMs = this.#dependencies.monotonicMs()
        const deadline = map.firstDeadline
        const { oldest } = map
        if (oldest === null || deadline > nowMs || this.#maps.get(channel) !== map) break
        this.#remove(channel, map, oldest, nowMs)
        keys += 1
        lagMs = Math.max(lagMs, nowMs - deadline)
        if (slice.isOverAt(nowMs)) await slice.next()
      }
      if (slice.isOverAfterStep) await slice.next()
    }
    return { keys, lagMs }
  }

  /** Called when the last subscriber of a channel has left: the lifetime of the map starts. */
  unsubscribed(channel: string): void {
    this.#maps.get(channel)?.touch(this.#dependencies.monotonicMs())
  }

  /** Called at intervals. Removes expired maps, old changes and idempotency results. */
  sweep(): void {
    const nowMs = this.#dependencies.monotonicMs()
    this.#results.sweep(nowMs)
    for (const [channel, map] of this.#maps) {
      if (this.#isExpired(channel, map, nowMs)) this.#maps.delete(channel)
      else map.stream.expire(nowMs)
    }
  }

  /** The map of a channel, which is used now. */
  #map(channel: string, options: MapStorageOptions, nowMs: number): MemoryMap {
    const known = this.#existing(channel, options)
    if (known !== undefined) {
      known.touch(nowMs)
      return known
    }
    const map = new MemoryMap(this.#dependencies.newEpoch(), options, nowMs)
    this.#maps.set(channel, map)
    return map
  }

  /** A map whose mode was changed is a new one if changes have no offset in one of the modes. */
  #existing(channel: string, options: MapStorageOptions): MemoryMap | undefined {
    const map = this.#maps.get(channel)
    if (map === undefined || map.hasStream !== hasStream(options)) return undefined
    if (this.#isExpired(channel, map, this.#dependencies.monotonicMs())) return undefined
    map.use(options)
    return map
  }

  #isExpired(channel: string, map: MemoryMap, nowMs: number): boolean {
    return map.isExpired(nowMs) && !this.#dependencies.hasSubscribers(channel)
  }

  #remove(channel: string, map: MemoryMap, entry: MapEntry, nowMs: number): void {
    const { key, tags } = entry
    const time = this.#dependencies.nowMs()
    const offset = nextOffset(map)
    const removal: Publication = {
      data: 'null',
      offset,
      info: null,
      tags,
      time,
      delta: false,
      version: 0,
      key,
      removed: true
    }
    map.remove(entry)
    map.append(removal, nowMs)
    this.#deliver(channel, map, removal, entry)
  }

  #deliver(channel: string, map: MemoryMap, change: Publication, replaced: MapEntry | undefined): void {
    const previous =
      map.options.deliversPrevious && replaced !== undefined ? { data: replaced.data, tags: replaced.tags } : null
    const { epoch } = positionOf(map)
    this.#dependencies.deliver(channel, previous === null ? change : { ...change, previous }, epoch)
  }

  #knownResult(channel: string, idempotencyKey: string, nowMs: number): MapChanged | undefined {
    const known = idempotencyKey === '' ? undefined : this.#results.get(channel, idempotencyKey, nowMs)
    return known && { ...known, suppressedBy: 'idempotency' }
  }

  #changed(channel: string, map: MemoryMap, idempotencyKey: string, nowMs: number): MapChanged {
    const { epoch, offset } = positionOf(map)
    if (idempotencyKey !== '') this.#results.set(channel, idempotencyKey, { epoch, offset }, nowMs)
    return { epoch, offset, suppressedBy: null }
  }
}

const positionOf = ({ hasStream, stream }: MemoryMap): Position => (hasStream ? stream.position : NO_POSITION)

const nextOffset = ({ hasStream, stream }: MemoryMap): number => (hasStream ? stream.position.offset + 1 : 0)

const suppressed = (map: MemoryMap, suppressedBy: MapSuppression): MapChanged => ({
  ...positionOf(map),
  suppressedBy
})

/** The stored entry has no trace, because only the delivery is traced. */
const withTrace = (entry: MapEntry, trace: string | undefined): Publication =>
  trace === undefined ? entry : { ...entry, trace }
