import type { HistoryRange, Position, Publication } from '../core/broker.js'
import type { HistoryOptions } from '../core/options.js'

/** A place that nothing was ever published behind: who asks for made-up channels must not fill the memory with them. */
const UNUSED_MS = 10 * 60 * 1000

/** The latest publications of one channel. Its place outlives them. `nowMs` is the monotonic clock throughout. */
export class MemoryStream {
  #position: Position
  #publications: Publication[] = []
  /** When the publications run out: after a time without a new one. */
  #expiresAt = 0
  /** When the place itself runs out. */
  #forgottenAt = Number.POSITIVE_INFINITY
  #keptMs = 0
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
    while (this.#publications.length > historySize) this.#publications.shift()
    this.#expiresAt = nowMs + historyTtlMs
    this.keepFor(Math.max(historyMetaTtlMs, historyTtlMs), nowMs)
  }

  read({ since, limit, reverse }: HistoryRange, nowMs: number): readonly Publication[] {
    this.expire(nowMs)
    if (limit === 0) return []
    const all = this.#publications
    const first = all[0]?.offset ?? 0
    let found: readonly Publication[]
    if (since === null) found = reverse ? all.toReversed() : all
    else if (reverse) found = all.slice(0, Math.max(0, since.offset - first)).toReversed()
    else found = all.slice(Math.max(0, since.offset + 1 - first))
    return limit < 0 ? [...found] : found.slice(0, limit)
  }

  clear(): void {
    this.#publications = []
  }

  isOutdated(version: number, versionEpoch: string): boolean {
    const isSame = versionEpoch === '' || versionEpoch === this.#versionEpoch
    return isSame && version <= this.#version
  }

  setVersion(version: number, versionEpoch: string): void {
    this.#version = version
    this.#versionEpoch = versionEpoch
  }

  keepFor(ms: number, nowMs: number): void {
    const kept = ms > 0 ? ms : Number.POSITIVE_INFINITY
    this.#keptMs = kept
    this.#forgottenAt = nowMs + (this.#position.offset === 0 ? Math.min(kept, UNUSED_MS) : kept)
  }

  /** Nobody listens any more: from now on it is unused. */
  left(nowMs: number): void {
    this.keepFor(this.#keptMs, nowMs)
  }

  isForgotten(nowMs: number): boolean {
    return nowMs >= this.#forgottenAt
  }

  expire(nowMs: number): void {
    if (this.#publications.length > 0 && nowMs >= this.#expiresAt) this.clear()
  }
}
