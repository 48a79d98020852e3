import { randomBytes } from 'node:crypto'

/** Where a secret may come from, in the order in which it is looked for. */
export interface SecretSource {
  /** As messages name it. */
  readonly name: string
  readonly text: string | null | undefined
}

export interface SecretRule {
  readonly production: boolean
  /** Whether nobody is asked for it anyway. */
  readonly optional: boolean
  /** Whether a source was malformed, which was told already. */
  readonly faulty: boolean
}

const STRONG = /^[0-9a-f]{64}$/i

/** What "0000…" and "abab…" have in common. */
const DISTINCT_CHARACTERS = 4

const RANDOM_BYTES = 32

/** The first one there is. Where none is needed it is one that nobody knows, so that no empty one is ever compared. */
export const chooseSecret = (sources: readonly SecretSource[], rule: SecretRule, faults: string[]): string => {
  const chosen = sources.find(({ text }) => typeof text === 'string')
  if (typeof chosen?.text !== 'string') {
    if (!rule.optional && !rule.faulty) faults.push(`${sources[0]?.name} is required`)
    return randomBytes(RANDOM_BYTES).toString('hex')
  }
  if (rule.production) faults.push(...weaknesses(chosen.name, chosen.text))
  return chosen.text
}

/** Why a secret is not good enough for production. */
export const weaknesses = (name: string, secret: string): readonly string[] => {
  if (!STRONG.test(secret)) return [`${name} must be 64 hex characters in production`]
  if (new Set(secret).size >= DISTINCT_CHARACTERS) return []
  return [`${name} is too easy to guess: use at least ${DISTINCT_CHARACTERS} different characters`]
}
