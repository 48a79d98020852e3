import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { count, flag, text } from './schema-kinds.js'

export const USER_ID_CLAIM_PATTERN = '^[a-zA-Z_]+$'

const MAX_UNIX_SECONDS = 99_999_999_999

const tokenOptions = {
  hmac_previous_secret_key: text('The secret that is being replaced; its tokens are still accepted.'),
  hmac_previous_secret_key_valid_until: count(
    'Unix time in seconds from which hmac_previous_secret_key is rejected; 0: no limit.',
    0,
    MAX_UNIX_SECONDS,
    0
  ),
  rsa_public_key: text('PEM text. Verifies RS256, RS384 and RS512.', 16_384),
  ecdsa_public_key: text('PEM text. Verifies ES256, ES384 or ES512, depending on its curve.', 16_384),
  eddsa_public_key: text('Gatehouse only: PEM text of an Ed25519 key. Verifies EdDSA.', 16_384),
  jwks_public_endpoint: text(
    'Address of a JSON Web Key Set with RSA, EC or Ed25519 keys. A token selects its key with kid.',
    2048
  ),
  audience: text('Required value in the aud claim.'),
  audience_regex: text(
    'Regular expression (RE2) that a value of the aud claim must match; use ^ and $ for the whole value.'
  ),
  issuer: text('Required value of the iss claim.'),
  issuer_regex: text('Regular expression (RE2) that the iss claim must match; use ^ and $ for the whole value.'),
  user_id_claim: Type.Optional(
    Type.String({
      description: 'The claim that contains the user id.',
      pattern: USER_ID_CLAIM_PATTERN,
      maxLength: 64,
      default: 'sub'
    })
  ),
  expiry_required: flag('Gatehouse only: tokens must have an expiry.', true)
} as const satisfies Record<string, TSchema>

export const TokenSchema = Type.Object(
  { hmac_secret_key: text('Same as REALTIME_HMAC_SECRET. Verifies HS256, HS384 and HS512.'), ...tokenOptions },
  { additionalProperties: false }
)
export type FileToken = Static<typeof TokenSchema>

export const SubscriptionTokenSchema = Type.Object(
  {
    enabled: flag('Use these options. By default subscription tokens have the options of connection tokens.'),
    hmac_secret_key: text('Verifies HS256, HS384 and HS512.'),
    ...tokenOptions
  },
  { additionalProperties: false }
)
export type FileSubscriptionToken = Static<typeof SubscriptionTokenSchema>
