import { BoundedMap } from '../../shared/bounded-map.js'
import { type HistoryRange, type Position, type Publication, UNUSED_POSITION_TTL_MS } from '../core/engine.js'
import type { HistoryOptions } from '../core/options.js'

/** The history of one channel. The position outlives the publications. All times are on the monotonic clock. */
export class ChannelStream {
  #position: Position
  #publications: Publication[] = []
  /** When each of the publications expires. */
  #expiries: number[] = []
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
    while (this.#publications.length > historySize) this.#removeOldest()
    this.setPositionTtl(historyMetaTtlMs, nowMs)
  }

  read({ since, limit, reverse }: HistoryRange, nowMs: number): readonly Publication[] {
    this.expire(nowMs)
    if (limit === 0) return []
    const all = this.#publications
    const first = all[0]?.offset ?? 0
    let selected: readonly Publication[]
    if (since === null) selected = reverse ? all.toReversed() : all
    else if (reverse) selected = all.slice(0, Math.max(0, since.offset - first)).toReversed()
    else selected = all.slice(Math.max(0, since.offset + 1 - first))
    return limit < 0 ? [...selected] : selected.slice(0, limit)
  }

  get oldestOffset(): number {
    return this.#publications[0]?.offset ?? this.#position.offset + 1
  }

  clear(): void {
    this.#publications = []
    this.#expiries = []
  }

  #removeOldest(): void {
    this.#publications.shift()
    this.#expiries.shift()
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
    while (nowMs >= (this.#expiries[0] ?? Number.POSITIVE_INFINITY)) this.#removeOldest()
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
