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

/** The token has a valid signature but is not accepted. Its claims can be trusted. */
class EndedToken extends Error {
  // Private: the logger prints all fields of an error, and claims contain personal data.
  readonly #claims: TokenClaims

  constructor(message: string, claims: TokenClaims) {
    super(message)
    this.#claims = claims
  }

  get claims(): TokenClaims {
    return this.#claims
  }
}

/** The token is valid except for its expiry. */
export class ExpiredToken extends EndedToken {
  override readonly name = 'ExpiredToken'

  constructor(claims: TokenClaims) {
    super('token expired', claims)
  }
}

/** The token is valid, but was revoked. */
export class RevokedToken extends EndedToken {
  override readonly name = 'RevokedToken'

  constructor(claims: TokenClaims) {
    super('token revoked', claims)
  }
}
