import { randomBytes } from 'node:crypto'

/** A possible source of a secret. */
export interface SecretSource {
  /** As it is named in error messages. */
  readonly name: string
  readonly text: string | null | undefined
}

export interface SecretRule {
  readonly isProduction: boolean
  /** The secret is not used, because the insecure option is on. */
  readonly isOptional: boolean
  /** A source is malformed, which has been reported already. */
  readonly isMalformed: boolean
}

const STRONG_SECRET = /^[0-9a-f]{64}$/i

/** Rejects secrets such as "0000…" and "abab…". */
const MIN_DISTINCT_CHARACTERS = 4

const RANDOM_BYTES = 32

/** The first source with a value. An optional secret becomes random, so that an empty secret never matches. */
export const chooseSecret = (sources: readonly SecretSource[], rule: SecretRule, errors: string[]): string => {
  const chosen = sources.find(({ text }) => typeof text === 'string')
  if (typeof chosen?.text !== 'string') {
    if (!rule.isOptional && !rule.isMalformed) errors.push(`${sources[0]?.name} is required`)
    return randomBytes(RANDOM_BYTES).toString('hex')
  }
  if (rule.isProduction) errors.push(...weaknesses(chosen.name, chosen.text))
  return chosen.text
}

/** Reasons why a secret is too weak for production. */
export const weaknesses = (name: string, secret: string): readonly string[] => {
  if (!STRONG_SECRET.test(secret)) return [`${name} must be 64 hex characters in production`]
  if (new Set(secret).size >= MIN_DISTINCT_CHARACTERS) return []
  return [`${name} is too easy to guess: use at least ${MIN_DISTINCT_CHARACTERS} different characters`]
}
