import { createHmac, hkdfSync, randomBytes } from 'node:crypto'
import { sameSecret } from '../../shared/same-secret.js'

const LIFETIME_SECONDS = 24 * 60 * 60
const SHAPE = /^v1\.[A-Za-z0-9_-]{32}\.([0-9a-z]{1,11})\.[A-Za-z0-9_-]{43}$/

/**
 * CSRF tokens: random, timestamped and signed. The key is derived from the secret that all instances share, so a token is
 * valid at every instance and after a restart.
 */
export class CsrfTokens {
  readonly lifetimeSeconds = LIFETIME_SECONDS
  readonly #key: Uint8Array
  readonly #previousKey: Uint8Array | null
  readonly #now: () => number

  /** Tokens signed with the previous secret are accepted, but not issued. */
  constructor(apiSecret: string, now: () => number = Date.now, previousSecret: string | null = null) {
    this.#key = tokenKey(apiSecret)
    this.#previousKey = previousSecret === null ? null : tokenKey(previousSecret)
    this.#now = now
  }

  issue(): string {
    const unsigned = `v1.${randomBytes(24).toString('base64url')}.${this.#nowSeconds().toString(36)}`
    return `${unsigned}.${signature(unsigned, this.#key)}`
  }

  /** Whether the token was issued by this service and has not expired. */
  isValid(token: string): boolean {
    const issuedAt = Number.parseInt(SHAPE.exec(token)?.[1] ?? '', 36)
    const age = this.#nowSeconds() - issuedAt
    // The clock of another instance may be slightly ahead.
    if (!(age > -60 && age < LIFETIME_SECONDS)) return false
    const end = token.lastIndexOf('.')
    const [unsigned, given] = [token.slice(0, end), token.slice(end + 1)]
    if (sameSecret(given, signature(unsigned, this.#key))) return true
    return this.#previousKey !== null && sameSecret(given, signature(unsigned, this.#previousKey))
  }

  #nowSeconds(): number {
    return Math.floor(this.#now() / 1000)
  }
}

const tokenKey = (apiSecret: string): Uint8Array =>
  new Uint8Array(hkdfSync('sha256', apiSecret, '', 'gatehouse csrf token v1', 32))

const signature = (unsigned: string, key: Uint8Array): string =>
  createHmac('sha256', key).update(unsigned).digest('base64url')
