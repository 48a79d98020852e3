import { BoundedMap } from '../../shared/bounded-map.js'
import { type HistoryRange, UNUSED_POSITION_TTL_MS } from '../core/engine.js'
import type { HistoryOptions } from '../core/options.js'
import type { Position, Publication } from '../core/publication.js'

/** Removed publications are cut off when they are more than one of this many. */
const CUT_SHARE = 8

/** The history of one channel. The position outlives the publications. All times are on the monotonic clock. */
export class ChannelStream {
  #position: Position
  #publications: Publication[] = []
  /** When each of the publications expires. */
  #expiries: number[] = []
  /** Index of the oldest publication. Those before it were removed: cutting off each of them would move all others. */
  #first = 0
  /** When the position itself expires. */
  #positionExpiresAt = Number.POSITIVE_INFINITY
  #positionTtlMs = 0
  #version = 0
  #versionEpoch = ''

  constructor(epoch: string) {
    this.#position = { epoch, offset: 0 }
  }

  get position(): Position {
    return this.#position
  }

  append(
    publication: Publication,
    { historySize, historyTtlMs, historyMetaTtlMs }: HistoryOptions,
    nowMs: number
  ): void {
    this.expire(nowMs)
    this.#position = { epoch: this.#position.epoch, offset: publication.offset }
    this.#publications.push(publication)
    this.#expiries.push(nowMs + historyTtlMs)
    this.#removeBefore(Math.max(this.#first, this.#publications.length - historySize))
    this.setPositionTtl(historyMetaTtlMs, nowMs)
  }

  read({ since, limit, reverse }: HistoryRange, nowMs: number): readonly Publication[] {
    this.expire(nowMs)
    if (limit === 0) return []
    const all = this.#publications
    const end = all.length
    const oldest = this.#first
    const offset = all[oldest]?.offset ?? 0
    const count = limit < 0 ? end : limit
    if (reverse) {
      const to = since === null ? end : Math.min(end, oldest + Math.max(0, since.offset - offset))
      return all.slice(Math.max(oldest, to - count), to).reverse()
    }
    const from = oldest + (since === null ? 0 : Math.max(0, since.offset + 1 - offset))
    return all.slice(from, from + count)
  }

  get oldestOffset(): number {
    return this.#publications[this.#first]?.offset ?? this.#position.offset + 1
  }

  clear(): void {
    this.#publications = []
    this.#expiries = []
    this.#first = 0
  }

  #removeBefore(index: number): void {
    this.#first = index
    if (index * CUT_SHARE <= this.#publications.length) return
    this.#publications.splice(0, index)
    this.#expiries.splice(0, index)
    this.#first = 0
  }

  isOutdated(version: number, versionEpoch: string): boolean {
    const isSame = versionEpoch === '' || versionEpoch === this.#versionEpoch
    return isSame && version <= this.#version
  }

  setVersion(version: number, versionEpoch: string): void {
    this.#version = version
    this.#versionEpoch = versionEpoch
  }

  setPositionTtl(ms: number, nowMs: number): void {
    this.#positionTtlMs = ms
    const isUnused = this.#position.offset === 0
    this.#positionExpiresAt = nowMs + (isUnused ? Math.min(ms, UNUSED_POSITION_TTL_MS) : ms)
  }

  /** The position's TTL starts when the last subscriber has left. */
  unsubscribed(nowMs: number): void {
    this.setPositionTtl(this.#positionTtlMs, nowMs)
  }

  isExpired(nowMs: number): boolean {
    return nowMs >= this.#positionExpiresAt
  }

  expire(nowMs: number): void {
    const newest = this.#expiries[this.#expiries.length - 1]
    if (newest !== undefined && nowMs >= newest) this.clear()
    let first = this.#first
    while (nowMs >= (this.#expiries[first] ?? Number.POSITIVE_INFINITY)) first++
    if (first > this.#first) this.#removeBefore(first)
  }
}

const IDEMPOTENCY_TTL_MS = 5 * 60 * 1000
/** The oldest results are dropped if a publisher uses keys faster than they expire. */
const MIN_RESULTS = 100_000

interface IdempotencyEntry {
  readonly position: Position
  readonly expiresAt: number
}

/** The positions of publications with an idempotency key, while the key is valid. All times are on the monotonic clock. */
export class IdempotencyCache {
  readonly #results = new BoundedMap<string, IdempotencyEntry>(MIN_RESULTS)

  get(channel: string, key: string, nowMs: number): Position | undefined {
    const result = this.#results.get(cacheKey(channel, key))
    return result !== undefined && nowMs < result.expiresAt ? result.position : undefined
  }

  set(channel: string, key: string, position: Position, nowMs: number): void {
    this.#results.set(cacheKey(channel, key), { position, expiresAt: nowMs + IDEMPOTENCY_TTL_MS })
  }

  sweep(nowMs: number): void {
    this.#results.expire(({ expiresAt }) => expiresAt <= nowMs)
  }
}

// With the length of the channel, so that different pairs have different keys.
const cacheKey = (channel: string, key: string): string => `${channel.length}:${channel}${key}`
