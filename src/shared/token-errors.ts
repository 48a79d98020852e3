/** Claims of every token. `exp` is in the unit of the token's format. */
export interface TokenClaims {
  readonly [claim: string]: unknown
  readonly exp: number
}

/** Identifiers for logs and audit records. API clients are only informed that the token is invalid. */
export type RejectionReason =
  | 'too-long'
  | 'malformed'
  | 'not-an-object'
  | 'bad-algorithm'
  | 'bad-header'
  | 'bad-signature'
  | 'no-key-id'
  | 'unknown-key'
  | 'no-expiry'
  | 'bad-expiry'
  | 'wrong-expiry-unit'
  | 'bad-not-before'
  | 'not-yet-valid'
  | 'bad-issued-at'
  | 'issued-in-future'

/** The token has a wrong signature or violates a rule of its format. */
export class InvalidToken extends Error {
  override readonly name = 'InvalidToken'
  readonly reason: RejectionReason

  constructor(reason: RejectionReason, options?: ErrorOptions) {
    super(`token rejected: ${reason}`, options)
    this.reason = reason
  }
}

/** The token is valid except for its expiry, so its claims can be trusted. */
export class ExpiredToken extends Error {
  override readonly name = 'ExpiredToken'
  // Private: the logger prints all fields of an error, and claims contain personal data.
  readonly #claims: TokenClaims

  constructor(claims: TokenClaims) {
    super('token expired')
    this.#claims = claims
  }

  get claims(): TokenClaims {
    return this.#claims
  }
}
