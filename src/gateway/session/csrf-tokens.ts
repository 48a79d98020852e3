import { createHmac, hkdfSync, randomBytes } from 'node:crypto'
import { sameSecret } from '../../shared/same-secret.js'

const LIFETIME_SECONDS = 24 * 60 * 60
const SHAPE = /^v1\.[A-Za-z0-9_-]{32}\.([0-9a-z]{1,11})\.[A-Za-z0-9_-]{43}$/

/**
 * CSRF tokens: random, dated and signed. The key comes from the secret that all instances share, so a token that one
 * issued is good at every other, and after a restart.
 */
export class CsrfTokens {
  readonly lifetimeSeconds = LIFETIME_SECONDS
  readonly #key: Uint8Array
  readonly #now: () => number

  constructor(apiSecret: string, now: () => number = Date.now) {
    this.#key = new Uint8Array(hkdfSync('sha256', apiSecret, '', 'gatehouse csrf token v1', 32))
    this.#now = now
  }

  issue(): string {
    const unsigned = `v1.${randomBytes(24).toString('base64url')}.${this.#nowSeconds().toString(36)}`
    return `${unsigned}.${this.#signature(unsigned)}`
  }

  /** Issued by this service, and not too long ago. */
  isGood(token: string): boolean {
    const issuedAt = Number.parseInt(SHAPE.exec(token)?.[1] ?? '', 36)
    const age = this.#nowSeconds() - issuedAt
    // Another instance's clock may be a little ahead.
    if (!(age > -60 && age < LIFETIME_SECONDS)) return false
    const end = token.lastIndexOf('.')
    return sameSecret(token.slice(end + 1), this.#signature(token.slice(0, end)))
  }

  #signature(unsigned: string): string {
    return createHmac('sha256', this.#key).update(unsigned).digest('base64url')
  }

  #nowSeconds(): number {
    return Math.floor(this.#now() / 1000)
  }
}
