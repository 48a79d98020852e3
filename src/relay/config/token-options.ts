import { createPublicKey, type KeyObject } from 'node:crypto'
import type { ClaimRules } from '../core/options.js'
import type { ReportError } from './file.js'
import { parsePattern } from './pattern.js'
import type { FileSubscriptionToken, FileToken } from './token-schema.js'

/** The keys of one kind of token. A token is accepted if one of them verifies it. */
export interface TokenKeys {
  /** Verifies HS256, HS384 and HS512; null: such tokens are rejected. */
  readonly hmacSecret: string | null
  /** Accepted during a rotation of the secret. */
  readonly previousHmacSecret: string | null
  /** Milliseconds since 1970 from which the previous secret is rejected. */
  readonly previousValidUntilMs: number
  readonly rsaPublicKey: KeyObject | null
  readonly ecdsaPublicKey: KeyObject | null
  readonly eddsaPublicKey: KeyObject | null
  /** Address of a JSON Web Key Set. */
  readonly jwksEndpoint: string | null
}

interface HmacSecrets {
  readonly secret: string | null
  readonly previous: string | null
}

type FileTokenOptions = FileToken | FileSubscriptionToken

export const hasPublicKey = (file: FileTokenOptions): boolean =>
  [file.rsa_public_key, file.ecdsa_public_key, file.eddsa_public_key, file.jwks_public_endpoint].some(
    (source) => source !== undefined
  )

export const tokenKeys = (
  file: FileTokenOptions,
  { secret, previous }: HmacSecrets,
  report: ReportError
): TokenKeys => {
  const validUntil = file.hmac_previous_secret_key_valid_until ?? 0
  if (validUntil > 0 && previous === null)
    report('hmac_previous_secret_key_valid_until', 'needs hmac_previous_secret_key')
  if (previous !== null && secret === null) report('hmac_previous_secret_key', 'needs hmac_secret_key')
  for (const text of [secret, previous]) {
    // Otherwise everyone with the public key could sign tokens.
    if (text?.includes('-----BEGIN'))
      report(
        'hmac_secret_key',
        'must not be a PEM key; use rsa_public_key, ecdsa_public_key or eddsa_public_key for public keys'
      )
  }
  return Object.freeze({
    hmacSecret: secret,
    previousHmacSecret: previous,
    previousValidUntilMs: validUntil === 0 ? Number.POSITIVE_INFINITY : validUntil * 1000,
    rsaPublicKey: publicKey(file.rsa_public_key, 'rsa_public_key', isStrongRsaKey, report),
    ecdsaPublicKey: publicKey(file.ecdsa_public_key, 'ecdsa_public_key', isEcdsaKey, report),
    eddsaPublicKey: publicKey(file.eddsa_public_key, 'eddsa_public_key', isEddsaKey, report),
    jwksEndpoint: endpoint(file.jwks_public_endpoint, report)
  })
}

const MIN_RSA_BITS = 2048

const isStrongRsaKey = (key: KeyObject): boolean =>
  key.asymmetricKeyType === 'rsa' && (key.asymmetricKeyDetails?.modulusLength ?? 0) >= MIN_RSA_BITS

const isEcdsaKey = (key: KeyObject): boolean =>
  key.asymmetricKeyType === 'ec' && ecdsaAlgorithm(key.asymmetricKeyDetails?.namedCurve) !== null

const isEddsaKey = (key: KeyObject): boolean => key.asymmetricKeyType === 'ed25519'

const ECDSA_ALGORITHMS: ReadonlyMap<string, string> = new Map([
  ['prime256v1', 'ES256'],
  ['secp384r1', 'ES384'],
  ['secp521r1', 'ES512']
])

/** The only algorithm that a curve permits; null for curves without one. */
export const ecdsaAlgorithm = (curve: string | undefined): string | null => ECDSA_ALGORITHMS.get(curve ?? '') ?? null

const KEY_RULES = {
  rsa_public_key: `must be the PEM text of an RSA public key of at least ${MIN_RSA_BITS} bits`,
  ecdsa_public_key: 'must be the PEM text of a public key on the curve P-256, P-384 or P-521',
  eddsa_public_key: 'must be the PEM text of an Ed25519 public key'
}

const publicKey = (
  pem: string | undefined,
  option: keyof typeof KEY_RULES,
  isAccepted: (key: KeyObject) => boolean,
  report: ReportError
): KeyObject | null => {
  if (pem === undefined) return null
  // Node.js would derive the public key. A private key does not belong in this file.
  if (pem.includes('PRIVATE KEY')) {
    report(option, 'must be a public key, not a private key')
    return null
  }
  try {
    const key = createPublicKey(pem)
    if (isAccepted(key)) return key
  } catch {
    // Reported below.
  }
  report(option, KEY_RULES[option])
  return null
}

const endpoint = (address: string | undefined, report: ReportError): string | null => {
  if (address === undefined) return null
  if (address.includes('{{')) {
    report(
      'jwks_public_endpoint',
      'must not contain {{…}}, because a token that is not verified yet would choose the address; use one address'
    )
    return null
  }
  const url = URL.canParse(address) ? new URL(address) : null
  if (url !== null && (url.protocol === 'http:' || url.protocol === 'https:') && url.username === '' && url.hash === '')
    return address
  report('jwks_public_endpoint', 'must be an http or https address without user name and fragment')
  return null
}

/** The rules for the claims of a token. */
export const claimRules = (file: FileTokenOptions, report: ReportError): ClaimRules =>
  Object.freeze({
    expiryRequired: file.expiry_required ?? true,
    audience: valueRule('audience', file.audience, file.audience_regex, report),
    issuer: valueRule('issuer', file.issuer, file.issuer_regex, report),
    userIdClaim: file.user_id_claim ?? 'sub'
  })

const valueRule = (
  option: 'audience' | 'issuer',
  value: string | undefined,
  pattern: string | undefined,
  report: ReportError
): ClaimRules['audience'] => {
  if (value !== undefined && pattern !== undefined) report(`${option}_regex`, `excludes ${option}; use one of them`)
  return parsePattern(`${option}_regex`, pattern, report) ?? value ?? null
}
