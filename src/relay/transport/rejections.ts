import type { IncomingMessage } from 'node:http'
import { type Clocks, wallTimeOf } from '../core/clocks.js'
import type { Log } from '../core/relay.js'

export type RejectionKind = 'origin' | 'token' | 'api_key'

export interface RejectionMetrics {
  rejected(kind: RejectionKind, reason: string): void
}

const MAX_ORIGIN_LENGTH = 200

/** Rejected origins, tokens and API keys: counted by reason, in the log, and kept for the operators' first checks. */
export class Rejections {
  readonly #recentRejections: RecentRejections
  readonly #metrics: RejectionMetrics
  readonly #log: LimitedLog

  constructor(recentRejections: RecentRejections, metrics: RejectionMetrics, log: LimitedLog) {
    this.#recentRejections = recentRejections
    this.#metrics = metrics
    this.#log = log
  }

  origin({ headers }: IncomingMessage, address: string): void {
    const origin = headers.origin ?? ''
    this.#recentRejections.add('origin', origin)
    this.#reject('origin', 'not-allowed', { address, origin: origin.slice(0, MAX_ORIGIN_LENGTH) }, 'rejected origin')
  }

  token(reason: string, address: string): void {
    this.#recentRejections.add('token', reason)
    this.#reject('token', reason, { address }, 'rejected token')
  }

  key(reason: 'missing' | 'wrong', address: string): void {
    this.#recentRejections.add('key', address)
    this.#reject('api_key', reason, { address }, 'rejected API key')
  }

  #reject(kind: RejectionKind, reason: string, facts: object, message: string): void {
    this.#metrics.rejected(kind, reason)
    this.#log.warn(`${kind} ${reason}`, { reason, ...facts }, message)
  }
}

/** A stranger can send any text: so many are told apart, and cut where they are long. */
const MAX_ENTRIES = 50
const MAX_LENGTH = 200

export interface RecentCount {
  readonly what: string
  readonly count: number
  /** In milliseconds since 1970. */
  readonly lastAt: number
}

/** How often things went wrong lately, by what it was. What has not come back for a while is forgotten. */
export class RecentCounts {
  readonly #clocks: Clocks
  readonly #keepMs: number
  /** `lastAt` is on the monotonic clock. */
  readonly #entries = new Map<string, { count: number; lastAt: number }>()

  constructor(clocks: Clocks, keepMs: number) {
    this.#clocks = clocks
    this.#keepMs = keepMs
  }

  add(what: string): void {
    const key = what.slice(0, MAX_LENGTH)
    const lastAt = this.#clocks.monotonicMs()
    const known = this.#entries.get(key)
    if (known !== undefined && !this.#isOld(known.lastAt)) {
      known.count++
      known.lastAt = lastAt
      return
    }
    if (known === undefined && this.#entries.size >= MAX_ENTRIES) this.#makeRoom()
    this.#entries.set(key, { count: 1, lastAt })
  }

  /** The most frequent first. */
  recent(): readonly RecentCount[] {
    for (const [what, { lastAt }] of this.#entries) if (this.#isOld(lastAt)) this.#entries.delete(what)
    return [...this.#entries]
      .map(([what, { count, lastAt }]) => ({ what, count, lastAt: wallTimeOf(lastAt, this.#clocks) }))
      .sort((left, right) => right.count - left.count)
  }

  #isOld(lastAt: number): boolean {
    return this.#clocks.monotonicMs() - lastAt >= this.#keepMs
  }

  /** What is made up comes once; what is really wrong comes again and stays. */
  #makeRoom(): void {
    let rarest = ''
    let least = Number.POSITIVE_INFINITY
    for (const [what, { count }] of this.#entries) {
      if (count >= least) continue
      least = count
      rarest = what
    }
    this.#entries.delete(rarest)
  }
}

const KEEP_MS = 10 * 60 * 1000

export type RecentRejectionKind = 'origin' | 'token' | 'key' | 'upgrade'

/** Why clients and publishers do not get through, for the operator's first checks. Costs something only when it happens. */
export class RecentRejections {
  readonly #kinds: Readonly<Record<RecentRejectionKind, RecentCounts>>

  constructor(clocks: Clocks) {
    const counts = (): RecentCounts => new RecentCounts(clocks, KEEP_MS)
    this.#kinds = { origin: counts(), token: counts(), key: counts(), upgrade: counts() }
  }

  add(kind: RecentRejectionKind, what: string): void {
    this.#kinds[kind].add(what)
  }

  recent(kind: RecentRejectionKind): readonly RecentCount[] {
    return this.#kinds[kind].recent()
  }
}

const PERIOD_MS = 10_000

interface Period {
  /** Of the last one that was not logged. */
  facts: object
  unlogged: number
}

/**
 * Warnings that strangers can cause as often as they like: for each key one line at once, and then at most one in ten
 * seconds, for the last occurrence, with the number of those that were suppressed before it.
 */
export class LimitedLog {
  readonly #log: Pick<Log, 'warn'>
  readonly #periodMs: number
  readonly #periods = new Map<string, Period>()

  constructor(log: Pick<Log, 'warn'>, periodMs = PERIOD_MS) {
    this.#log = log
    this.#periodMs = periodMs
  }

  /** Keys are few, and never what somebody sent. */
  warn(key: string, facts: object, message: string): void {
    const period = this.#periods.get(key)
    if (period !== undefined) {
      period.unlogged += 1
      period.facts = facts
      return
    }
    this.#log.warn({ ...facts, suppressed: 0 }, message)
    this.#begin(key, message)
  }

  #begin(key: string, message: string): void {
    const period: Period = { facts: {}, unlogged: 0 }
    this.#periods.set(key, period)
    setTimeout(() => this.#end(key, period, message), this.#periodMs).unref()
  }

  #end(key: string, { facts, unlogged }: Period, message: string): void {
    this.#periods.delete(key)
    if (unlogged === 0) return
    this.#log.warn({ ...facts, suppressed: unlogged - 1 }, message)
    this.#begin(key, message)
  }
}
