import type { TokenRejectionReason } from '../relay/core/session/tokens.js'

/** Why the servers reject a token, for people. The identifiers occur in logs, metrics and audit records. */
export const TOKEN_REASONS: Readonly<Record<TokenRejectionReason, string>> = {
  'too-long': 'it is longer than any token',
  malformed: 'it is not a JSON web token, nor base64 and a signature in hex',
  'not-an-object': 'its claims are not an object',
  'bad-algorithm': 'no configured key is for the algorithm in its header',
  'bad-header': 'its header has another type, or extensions',
  'bad-signature': 'it was signed with another secret or key, or changed afterwards',
  'no-key-id': 'its header does not name a key of the JWKS',
  'unknown-key': 'the JWKS does not have the key that its header names',
  'no-expiry': 'it has no claim exp',
  'bad-expiry': 'exp is not a number',
  'wrong-expiry-unit': 'exp has the wrong unit: seconds in JSON web tokens, milliseconds in the other format',
  'bad-not-before': 'nbf is not a time',
  'not-yet-valid': 'nbf is in the future: compare the clocks',
  'bad-issued-at': 'iat is not a time',
  'issued-in-future': 'iat is in the future: compare the clocks',
  expired: 'its time is over',
  revoked: 'it was revoked',
  'invalidations-unknown': 'the relay does not know whether it was revoked',
  'keys-unavailable': 'the keys at the JWKS address cannot be loaded',
  missing: 'there is none',
  'bad-claims': 'a claim has the wrong type, audience or issuer',
  'no-user': 'it has no user, and anonymous users are not allowed',
  'other-user': 'it is for another user',
  'other-client': 'it is for another connection',
  'other-channel': 'it is for another channel'
}
