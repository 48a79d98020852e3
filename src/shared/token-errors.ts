/** What every signed token carries, whoever issued it; `exp` is in the unit of the token's format. */
export interface TokenClaims {
  readonly [claim: string]: unknown
  readonly exp: number
}

/** Short words for logs and audit lines; the caller of the API learns only that the token was refused. */
export type RefusalReason =
  | 'too-long'
  | 'malformed'
  | 'not-an-object'
  | 'bad-algorithm'
  | 'bad-header'
  | 'bad-signature'
  | 'no-expiry'
  | 'bad-expiry'
  | 'wrong-expiry-unit'
  | 'bad-not-before'
  | 'not-yet-valid'
  | 'bad-issued-at'
  | 'issued-in-future'

/** The token proves nothing: it is not ours, or it breaks a rule of its format. */
export class InvalidToken extends Error {
  override readonly name = 'InvalidToken'
  readonly reason: RefusalReason

  constructor(reason: RefusalReason, options?: ErrorOptions) {
    super(`token refused: ${reason}`, options)
    this.reason = reason
  }
}

/** The token is ours and was good once: everything but its expiry holds, so its claims may be believed. */
export class ExpiredToken extends Error {
  override readonly name = 'ExpiredToken'
  // Private, because the logger prints every own field of an error and claims hold personal data.
  readonly #claims: TokenClaims

  constructor(claims: TokenClaims) {
    super('token expired')
    this.#claims = claims
  }

  get claims(): TokenClaims {
    return this.#claims
  }
}
