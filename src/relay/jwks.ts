import { createLocalJWKSet, type JWK } from 'jose'
import { readBounded } from '../shared/bounded-body.js'
import type { Log } from '../shared/log.js'

// jose can load a remote key set itself. It does not limit the size of the response, has no cool-down after a failed
// request, makes every client wait while an old set is reloaded, and accepts keys without `use`.

const MAX_AGE_MS = 3_600_000
/** From this age on, keys are reloaded while they are still used, so that no client waits. */
const RELOAD_AGE_MS = 3_000_000
/** Minimum time between two requests, also if clients send tokens with invented key ids. */
const COOL_DOWN_MS = 1_000
const COOL_DOWN_AFTER_FAILURE_MS = 5_000
const TIMEOUT_MS = 5_000
const MAX_BODY_BYTES = 256 * 1024

/** The key may exist: the keys could not be loaded, or were loaded before the token arrived. The client tries again. */
export class KeysUnavailable extends Error {
  override readonly name = 'KeysUnavailable'
  readonly reason: 'keys-unavailable' | 'unknown-key'

  constructor(reason: KeysUnavailable['reason']) {
    super(reason)
    this.reason = reason
  }
}

export type KeyLookup = ReturnType<typeof createLocalJWKSet>

interface KeySet {
  readonly ids: ReadonlySet<string>
  readonly lookup: KeyLookup
  readonly loadedAt: number
}

export interface RemoteKeySetDependencies {
  readonly monotonicMs: () => number
  readonly log: Pick<Log, 'warn'>
}

/**
 * The public keys at a JWKS address. They are cached for an hour. An unknown key id causes one request, unless the set was
 * loaded in the last second.
 */
export class RemoteKeySet {
  readonly #url: string
  readonly #monotonicMs: () => number
  readonly #log: Pick<Log, 'warn'>
  #keys: KeySet | null = null
  #loading: Promise<void> | null = null
  #nextLoadAt = Number.NEGATIVE_INFINITY
  #hasFailed = false

  constructor(url: string, { monotonicMs, log }: RemoteKeySetDependencies) {
    this.#url = url
    this.#monotonicMs = monotonicMs
    this.#log = log
  }

  /**
   * Returns null if a set that was requested after the call has no such key: an issuer publishes a key before it signs with it.
   * Throws `KeysUnavailable`.
   */
  async find(id: string): Promise<KeyLookup | null> {
    const known = this.#lookup(id)
    if (known !== null) {
      if (this.#ageMs() >= RELOAD_AGE_MS && this.#mayLoad()) void this.load()
      return known
    }
    const isRequested = this.#loading === null && this.#mayLoad()
    if (isRequested || this.#loading !== null) await this.load()
    if (this.#hasFailed) throw new KeysUnavailable('keys-unavailable')
    const found = this.#lookup(id)
    if (found === null && !isRequested) throw new KeysUnavailable('unknown-key')
    return found
  }

  /** A failure is logged and keeps the old keys. Concurrent calls share one request. */
  load(): Promise<void> {
    this.#loading ??= this.#fetch().finally(() => {
      this.#loading = null
    })
    return this.#loading
  }

  #mayLoad(): boolean {
    return this.#monotonicMs() >= this.#nextLoadAt
  }

  #ageMs(): number {
    return this.#keys === null ? Number.POSITIVE_INFINITY : this.#monotonicMs() - this.#keys.loadedAt
  }

  #lookup(id: string): KeyLookup | null {
    return this.#keys !== null && this.#ageMs() < MAX_AGE_MS && this.#keys.ids.has(id) ? this.#keys.lookup : null
  }

  async #fetch(): Promise<void> {
    try {
      const keys = await fetchKeys(this.#url)
      const lookup = createLocalJWKSet({ keys: [...keys] })
      this.#keys = { ids: new Set(keys.map(({ kid }) => kid)), lookup, loadedAt: this.#monotonicMs() }
      this.#hasFailed = false
    } catch (error) {
      this.#hasFailed = true
      this.#log.warn({ url: this.#url, reason: reasonOf(error) }, 'JWKS request failed')
    }
    this.#nextLoadAt = this.#monotonicMs() + (this.#hasFailed ? COOL_DOWN_AFTER_FAILURE_MS : COOL_DOWN_MS)
  }
}

/** Throws if the address does not return a key set in time. Redirects are not followed. */
const fetchKeys = async (url: string): Promise<readonly UsableKey[]> => {
  const response = await fetch(url, {
    headers: { accept: 'application/json, application/jwk-set+json' },
    redirect: 'manual',
    signal: AbortSignal.timeout(TIMEOUT_MS)
  })
  if (response.status !== 200) {
    await response.body?.cancel()
    throw new Error(`status ${response.status}`)
  }
  const { keys }: { keys?: unknown } = Object(
    JSON.parse(String(await readBounded(response.body ?? [], MAX_BODY_BYTES)))
  )
  if (!Array.isArray(keys)) throw new Error('not a key set')
  return keys.filter(isUsable)
}

interface UsableKey extends JWK {
  readonly kid: string
}

const KEY_TYPES: ReadonlySet<unknown> = new Set(['RSA', 'EC', 'OKP'])

/** A public signature key that a token can name. Secret keys (`oct`) do not belong in a public set. */
const isUsable = (key: unknown): key is UsableKey => {
  const { kid, kty, use }: Readonly<Record<string, unknown>> = Object(key)
  return typeof kid === 'string' && kid !== '' && use === 'sig' && KEY_TYPES.has(kty)
}

/** Network errors are in the cause of fetch's own error. */
const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof SyntaxError) return 'not JSON'
  return error.cause instanceof Error ? error.cause.message : error.message
}
