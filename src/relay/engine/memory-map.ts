import type { MapWrite } from '../core/engine.js'
import type { HistoryOptions, MapStorageOptions } from '../core/options.js'
import type { Payload, Publication } from '../core/publication.js'
import { ChannelStream } from './memory-stream.js'
import { SortedKeys } from './sorted-keys.js'

/**
 * An entry of a map. It is also an element of a list in the order of the last writes: the memory of a separate list would exceed
 * that of a small entry. These fields are private so that copies of the publication do not contain them.
 */
export class MapEntry implements Publication {
  readonly data: Payload
  readonly offset: number
  readonly info: string | null
  readonly tags: string | null
  readonly time: number
  readonly delta: boolean
  readonly version: number
  readonly key: string
  #writtenAt = 0
  #older: MapEntry | null = null
  #newer: MapEntry | null = null

  constructor({ data, info, tags, delta, version, key }: MapWrite, offset: number, time: number) {
    this.data = data
    this.offset = offset
    this.info = info
    this.tags = tags
    this.time = time
    this.delta = delta
    this.version = version
    this.key = key
  }

  /** The time of the last write on the monotonic clock. Whole milliseconds need no memory of their own. */
  get writtenAt(): number {
    return this.#writtenAt
  }

  /** Removes the entry from the list and returns the one that was written next. */
  unlink(): MapEntry | null {
    const newer = this.#newer
    if (this.#older !== null) this.#older.#newer = newer
    if (newer !== null) newer.#older = this.#older
    this.#older = null
    this.#newer = null
    return newer
  }

  linkAfter(newest: MapEntry | null, nowMs: number): void {
    this.#writtenAt = Math.ceil(nowMs)
    this.#older = newest
    if (newest !== null) newest.#newer = this
  }

  get older(): MapEntry | null {
    return this.#older
  }
}

interface KeyVersion {
  readonly version: number
  readonly epoch: string
}

/** The entries of one map and its stream. All times are on the monotonic clock. */
export class MemoryMap {
  readonly hasStream: boolean
  readonly stream: ChannelStream
  readonly keys = new SortedKeys()
  readonly #entries = new Map<string, MapEntry>()
  /** Only of keys that were written with a version. */
  readonly #versions = new Map<string, KeyVersion>()
  /** The ends of the list in the order of the last writes. */
  #oldest: MapEntry | null = null
  #newest: MapEntry | null = null
  #options: MapStorageOptions
  #streamOptions: HistoryOptions

  constructor(epoch: string, options: MapStorageOptions, nowMs: number) {
    this.hasStream = hasStream(options)
    this.stream = new ChannelStream(epoch)
    this.#options = options
    this.#streamOptions = streamOptions(options)
    this.touch(nowMs)
  }

  /** Options may change while the relay runs. Then they apply to the existing entries too. */
  use(options: MapStorageOptions): void {
    if (options === this.#options) return
    this.#options = options
    this.#streamOptions = streamOptions(options)
  }

  /** The lifetime of the map starts again. */
  touch(nowMs: number): void {
    this.stream.setPositionTtl(this.#streamOptions.historyMetaTtlMs, nowMs)
  }

  get options(): MapStorageOptions {
    return this.#options
  }

  get size(): number {
    return this.#entries.size
  }

  get(key: string): MapEntry | undefined {
    return this.#entries.get(key)
  }

  /** The position of a map without a stream does not matter, so only its entries keep it. */
  isExpired(nowMs: number): boolean {
    return this.hasStream ? this.stream.isExpired(nowMs) : this.size === 0
  }

  /** When the oldest entry expires. */
  get firstDeadline(): number {
    const { keyTtlMs } = this.#options
    return this.#oldest === null || keyTtlMs === 0 ? Number.POSITIVE_INFINITY : this.#oldest.writtenAt + keyTtlMs
  }

  /** The entry whose last write is the oldest one. */
  get oldest(): MapEntry | null {
    return this.#oldest
  }

  isOutdated(key: string, version: number, epoch: string): boolean {
    const last = this.#versions.get(key)
    return last !== undefined && (epoch === '' || epoch === last.epoch) && version <= last.version
  }

  write(entry: MapEntry, versionEpoch: string, nowMs: number): void {
    const { key, version } = entry
    const replaced = this.#entries.get(key)
    if (replaced === undefined) this.keys.add(key)
    else this.#unlink(replaced)
    this.#entries.set(key, entry)
    this.#link(entry, nowMs)
    if (version > 0) this.#versions.set(key, { version, epoch: versionEpoch })
    this.append(entry, nowMs)
  }

  /** The TTL of the entry starts again. */
  renew(entry: MapEntry, nowMs: number): void {
    this.#unlink(entry)
    this.#link(entry, nowMs)
  }

  remove(entry: MapEntry): void {
    this.#unlink(entry)
    this.#entries.delete(entry.key)
    this.#versions.delete(entry.key)
    this.keys.delete(entry.key)
  }

  append(change: Publication, nowMs: number): void {
    if (this.hasStream) this.stream.append(change, this.#streamOptions, nowMs)
  }

  #link(entry: MapEntry, nowMs: number): void {
    entry.linkAfter(this.#newest, nowMs)
    this.#newest = entry
    this.#oldest ??= entry
  }

  #unlink(entry: MapEntry): void {
    const { older } = entry
    const newer = entry.unlink()
    if (this.#newest === entry) this.#newest = older
    if (this.#oldest === entry) this.#oldest = newer
  }
}

export const hasStream = ({ mode }: MapStorageOptions): boolean => mode !== 'ephemeral'

const streamOptions = ({ streamSize, streamTtlMs, metaTtlMs }: MapStorageOptions): HistoryOptions => ({
  historySize: streamSize,
  historyTtlMs: streamTtlMs,
  historyMetaTtlMs: metaTtlMs === 0 ? Number.POSITIVE_INFINITY : metaTtlMs
})
