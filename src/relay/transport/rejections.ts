import type { IncomingMessage } from 'node:http'
import type { Log } from '../../shared/log.js'
import { type Clocks, wallTimeOf } from '../core/clocks.js'
import type { TokenRejectionReason } from '../core/session/tokens.js'

/** The reasons of each kind of rejection; labels of `relay_rejections_total`. */
export interface RejectionReasons {
  readonly origin: 'not-allowed'
  readonly token: TokenRejectionReason
  readonly api_key: 'missing' | 'wrong'
}

type RejectionKind = keyof RejectionReasons

export interface RejectionMetrics {
  rejected<Kind extends RejectionKind>(kind: Kind, reason: RejectionReasons[Kind]): void
}

/** The kinds of rejections that the diagnostics of the operators' page show. */
type RecentRejectionKind = RejectionKind | 'upgrade' | 'limit'

const MAX_LOGGED_ORIGIN = 200
const RECENT_MS = 10 * 60 * 1000

/** Records rejected origins, tokens, API keys and upgrades: in the metrics, in the log, and for the operators' page. */
export class Rejections {
  readonly #metrics: RejectionMetrics
  readonly #log: RateLimitedLog
  readonly #recent: Readonly<Record<RecentRejectionKind, RecentCounts>>

  constructor(metrics: RejectionMetrics, log: RateLimitedLog, clocks: Clocks) {
    const counts = (): RecentCounts => new RecentCounts(clocks, RECENT_MS)
    this.#metrics = metrics
    this.#log = log
    this.#recent = { origin: counts(), token: counts(), api_key: counts(), upgrade: counts(), limit: counts() }
  }

  origin({ headers }: IncomingMessage, address: string): void {
    const origin = headers.origin ?? ''
    this.#recent.origin.add(origin)
    this.#report(
      'origin',
      'not-allowed',
      { ip: address, origin: origin.slice(0, MAX_LOGGED_ORIGIN) },
      'rejected origin'
    )
  }

  token(reason: TokenRejectionReason, address: string): void {
    this.#recent.token.add(reason)
    this.#report('token', reason, { ip: address }, 'rejected token')
  }

  apiKey(reason: RejectionReasons['api_key'], address: string): void {
    this.#recent.api_key.add(address)
    this.#report('api_key', reason, { ip: address }, 'rejected API key')
  }

  /** A request to the WebSocket path without an upgrade, usually because of a proxy's configuration. */
  missingUpgrade(address: string): void {
    this.#recent.upgrade.add(address)
  }

  /** A limit rejected a user, or an address. */
  limit(limit: string, who: string): void {
    this.#recent.limit.add(`${who}: ${limit}`)
  }

  /** Rejections of the last ten minutes, the most frequent first. */
  recent(kind: RecentRejectionKind): readonly RecentCount[] {
    return this.#recent[kind].list()
  }

  #report<Kind extends RejectionKind>(
    kind: Kind,
    reason: RejectionReasons[Kind],
    facts: object,
    message: string
  ): void {
    this.#metrics.rejected(kind, reason)
    this.#log.warn(`${kind} ${reason}`, { reason, ...facts }, message)
  }
}

// Clients can send any text, so the number of entries and their length are limited.
const MAX_ENTRIES = 50
const MAX_LENGTH = 200

export interface RecentCount {
  readonly label: string
  readonly count: number
  /** In milliseconds since 1970. */
  readonly lastAt: number
}

/** Counts occurrences by text. An entry is removed when its text has not occurred for `maxAgeMs`. */
class RecentCounts {
  readonly #clocks: Clocks
  readonly #maxAgeMs: number
  /** `lastAt` is on the monotonic clock. */
  readonly #entries = new Map<string, { count: number; lastAt: number }>()

  constructor(clocks: Clocks, maxAgeMs: number) {
    this.#clocks = clocks
    this.#maxAgeMs = maxAgeMs
  }

  add(text: string): void {
    const key = text.slice(0, MAX_LENGTH)
    const lastAt = this.#clocks.monotonicMs()
    const entry = this.#entries.get(key)
    if (entry !== undefined && !this.#isOld(entry.lastAt)) {
      entry.count++
      entry.lastAt = lastAt
      return
    }
    if (entry === undefined && this.#entries.size >= MAX_ENTRIES) this.#removeRarest()
    this.#entries.set(key, { count: 1, lastAt })
  }

  /** The most frequent first. */
  list(): readonly RecentCount[] {
    for (const [label, { lastAt }] of this.#entries) if (this.#isOld(lastAt)) this.#entries.delete(label)
    return [...this.#entries]
      .map(([label, { count, lastAt }]) => ({ label, count, lastAt: wallTimeOf(lastAt, this.#clocks) }))
      .sort((left, right) => right.count - left.count)
  }

  #isOld(lastAt: number): boolean {
    return this.#clocks.monotonicMs() - lastAt >= this.#maxAgeMs
  }

  /** Invented texts occur once; a real misconfiguration repeats and is not evicted. */
  #removeRarest(): void {
    let rarest = ''
    let least = Number.POSITIVE_INFINITY
    for (const [label, { count }] of this.#entries) {
      if (count >= least) continue
      least = count
      rarest = label
    }
    this.#entries.delete(rarest)
  }
}

const PERIOD_MS = 10_000

type Level = 'warn' | 'error'

interface Period {
  readonly level: Level
  /** The fields of the last line that was not logged. */
  facts: object
  unlogged: number
}

/**
 * A log for lines that clients can cause at any rate. The first line of a key is logged at once; after that at most one line
 * per period, for the last occurrence, with the number of suppressed ones.
 */
export class RateLimitedLog {
  readonly #log: Pick<Log, Level>
  readonly #periodMs: number
  readonly #periods = new Map<string, Period>()

  constructor(log: Pick<Log, Level>, periodMs = PERIOD_MS) {
    this.#log = log
    this.#periodMs = periodMs
  }

  /** `key` must come from a small fixed set, never from a client. */
  warn(key: string, facts: object, message: string): void {
    this.#write('warn', key, facts, message)
  }

  /** Like `warn`. */
  error(key: string, facts: object, message: string): void {
    this.#write('error', key, facts, message)
  }

  #write(level: Level, key: string, facts: object, message: string): void {
    const period = this.#periods.get(key)
    if (period !== undefined) {
      period.unlogged += 1
      period.facts = facts
      return
    }
    this.#log[level]({ ...facts, suppressed: 0 }, message)
    this.#startPeriod(level, key, message)
  }

  #startPeriod(level: Level, key: string, message: string): void {
    const period: Period = { level, facts: {}, unlogged: 0 }
    this.#periods.set(key, period)
    setTimeout(() => this.#endPeriod(key, period, message), this.#periodMs).unref()
  }

  #endPeriod(key: string, { level, facts, unlogged }: Period, message: string): void {
    this.#periods.delete(key)
    if (unlogged === 0) return
    this.#log[level]({ ...facts, suppressed: unlogged - 1 }, message)
    this.#startPeriod(level, key, message)
  }
}
