import { isObject } from '../../../shared/is-object.js'
import { jsonOrUndefined } from '../../../shared/json-or-undefined.js'
import type { Log } from '../../../shared/log.js'
import { ERROR_LIMIT_EXCEEDED, ERROR_NOT_AVAILABLE, type ReplyError } from '../codes.js'
import { type Broker, EngineError, type History } from '../engine.js'
import { after } from '../maybe-promise.js'
import type { TokenInvalidation } from '../node-requests.js'
import type { ClaimRules, ClientOptions, HistoryOptions, TokenInvalidationOptions } from '../options.js'
import { NO_POSITION, type Position } from '../publication.js'
import { PLAIN_PUBLICATION } from '../publish/publish.js'
import { type CheckedToken, type Claims, type TokenCheck, userOf } from './tokens.js'

/** A name that no client and no publisher can use: see `resolveChannel`. */
const CHANNEL = '\u0000token-invalidations'

const MAX_ENTRIES = 100_000
export const PAGE_SIZE = 1000
const RETRY_MS = 1000

export interface TokenInvalidationsDependencies {
  readonly broker: Pick<Broker, 'publish'>
  readonly history: Pick<History, 'read'>
  readonly nowMs: () => number
  readonly setTimer: (task: () => void, ms: number) => () => void
  readonly log: Pick<Log, 'info' | 'error'>
  /** Null if tokens cannot be invalidated. */
  readonly options: () => TokenInvalidationOptions | null
}

/**
 * The invalidated tokens of all users. Each node has all of them in memory. The history of an internal channel stores them for
 * nodes that start later; until a node has read it, it accepts no token.
 */
export class TokenInvalidations {
  readonly #dependencies: TokenInvalidationsDependencies
  readonly #entries = new Map<string, TokenInvalidation>()
  #isLoaded = false
  #isLoading = false
  /** Whether the last attempt to read failed. */
  #hasFailed = false

  constructor(dependencies: TokenInvalidationsDependencies) {
    this.#dependencies = dependencies
  }

  /** Stores an invalidation for nodes that start later. Throws an `EngineError` if that fails. */
  async store(user: string, channel: string, issuedBefore: number): Promise<TokenInvalidation | ReplyError> {
    const options = this.#dependencies.options()
    if (options === null) return ERROR_NOT_AVAILABLE
    this.#removeExpired()
    if (this.#entries.size >= MAX_ENTRIES) return ERROR_LIMIT_EXCEEDED
    const expiresAt = this.#dependencies.nowMs() + options.ttlMs
    const invalidation: TokenInvalidation = { user, channel, issuedBefore, expiresAt }
    const publication = { ...PLAIN_PUBLICATION, data: JSON.stringify(invalidation) }
    await this.#dependencies.broker.publish(CHANNEL, publication, historyOptions(options))
    return invalidation
  }

  /** The invalidations in force, those of the latest tokens first. */
  get current(): readonly TokenInvalidation[] {
    this.#removeExpired()
    return [...this.#entries.values()].sort((left, right) => right.issuedBefore - left.issuedBefore)
  }

  /** Applies an invalidation at this node. */
  add(invalidation: TokenInvalidation): void {
    const key = keyOf(invalidation.user, invalidation.channel)
    const { issuedBefore = -1 } = this.#entries.get(key) ?? {}
    if (invalidation.issuedBefore > issuedBefore) this.#entries.set(key, invalidation)
  }

  /**
   * Reads the stored invalidations, again and again until that succeeds; resolves after the first attempt. Called at start, and
   * after commands were missed.
   */
  async load(): Promise<void> {
    if (this.#dependencies.options() === null || this.#isLoading) return
    this.#isLoading = true
    try {
      await this.#readAll()
      this.#isLoaded = true
      this.#report(null)
    } catch (error) {
      this.#report(error)
      this.#dependencies.setTimer(() => void this.load(), RETRY_MS)
    } finally {
      this.#isLoading = false
    }
  }

  /** False while the stored invalidations cannot be read. */
  get areKnown(): boolean {
    return this.#dependencies.options() === null || (this.#isLoaded && !this.#hasFailed)
  }

  /** Called after a reload of the configuration, which may have enabled invalidations. */
  configure(): void {
    if (!this.#isLoaded) void this.load()
  }

  /** A token check that also rejects invalidated tokens. They count as expired, so that a client requests a new one. */
  check(inner: TokenCheck, rules: () => ClaimRules): TokenCheck {
    return (token, nowMs, rejected) =>
      after(inner(token, nowMs, rejected), (checked): CheckedToken => {
        if (typeof checked === 'string' || this.#dependencies.options() === null) return checked
        if (!this.#isLoaded) {
          rejected('invalidations-unknown')
          return 'unavailable'
        }
        if (!this.#isInvalidated(checked, rules())) return checked
        rejected('revoked')
        return 'expired'
      })
  }

  #isInvalidated(claims: Claims, rules: ClaimRules): boolean {
    if (this.#entries.size === 0) return false
    const user = userOf(claims, rules)
    if (user === null || user === '') return false
    const { iat, channel } = claims
    const issuedAt = typeof iat === 'number' ? iat : Number.NEGATIVE_INFINITY
    const isBefore = (entry: TokenInvalidation | undefined): boolean =>
      // A token can be issued within the second of its invalidation.
      entry !== undefined && Math.floor(issuedAt) <= entry.issuedBefore
    if (isBefore(this.#entries.get(keyOf(user, '')))) return true
    return typeof channel === 'string' && channel !== '' && isBefore(this.#entries.get(keyOf(user, channel)))
  }

  async #readAll(): Promise<void> {
    const options = this.#dependencies.options()
    if (options === null) throw new EngineError('token invalidations are disabled')
    let since: Position = NO_POSITION
    for (let isFirst = true; ; isFirst = false) {
      const range = { since: isFirst ? null : since, limit: PAGE_SIZE, reverse: false }
      const page = await this.#dependencies.history.read(CHANNEL, range, historyOptions(options))
      for (const { data } of page.publications) {
        const entry = parseInvalidation(data)
        if (entry !== null) this.add(entry)
      }
      const last = page.publications.at(-1)
      if (last === undefined || page.publications.length < PAGE_SIZE) break
      since = { epoch: page.epoch, offset: last.offset }
    }
    this.#removeExpired()
  }

  /** Logs the first failure and the recovery, not every attempt in between. */
  #report(error: unknown): void {
    const { log } = this.#dependencies
    if (error !== null && !this.#hasFailed)
      log.error({ err: error, areTokensRejected: !this.#isLoaded }, 'token invalidations not read')
    if (error === null && this.#hasFailed) log.info({}, 'token invalidations read again')
    this.#hasFailed = error !== null
  }

  #removeExpired(): void {
    const now = this.#dependencies.nowMs()
    for (const [key, { expiresAt }] of this.#entries) if (expiresAt < now) this.#entries.delete(key)
  }
}

interface ClientTokenChecks {
  readonly checkToken: TokenCheck
  readonly checkSubscriptionToken: TokenCheck
}

/** Token checks that reject invalidated tokens. */
export const withTokenInvalidations = (
  dependencies: Omit<TokenInvalidationsDependencies, 'options'> & ClientTokenChecks,
  options: () => ClientOptions
): ClientTokenChecks & { readonly tokenInvalidations: TokenInvalidations } => {
  const tokenInvalidations = new TokenInvalidations({
    ...dependencies,
    options: () => options().tokenInvalidation
  })
  const { checkToken, checkSubscriptionToken } = dependencies
  return {
    tokenInvalidations,
    checkToken: tokenInvalidations.check(checkToken, () => options().token),
    checkSubscriptionToken: tokenInvalidations.check(checkSubscriptionToken, () => options().subscriptionToken)
  }
}

const historyOptions = ({ ttlMs }: TokenInvalidationOptions): HistoryOptions => ({
  historySize: MAX_ENTRIES,
  historyTtlMs: ttlMs,
  historyMetaTtlMs: ttlMs
})

const keyOf = (user: string, channel: string): string => JSON.stringify([user, channel])

/** Null for an entry of another version. */
const parseInvalidation = (data: string | Buffer): TokenInvalidation | null => {
  const value = jsonOrUndefined(String(data))
  if (!isObject(value)) return null
  const { user, channel, issuedBefore, expiresAt } = value
  if (typeof user !== 'string' || typeof channel !== 'string') return null
  return typeof issuedBefore === 'number' && typeof expiresAt === 'number'
    ? { user, channel, issuedBefore, expiresAt }
    : null
}
