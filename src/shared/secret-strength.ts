/** The form that a secret must have in production. */
export interface SecretForm {
  readonly pattern: RegExp
  /** Completes "must …". */
  readonly rule: string
}

/** Rejects secrets such as "0000…" and "abab…". */
const MIN_DISTINCT_CHARACTERS = 4

/** Reasons why a secret is too weak for production. */
export const weaknesses = (name: string, secret: string, { pattern, rule }: SecretForm): readonly string[] => {
  if (!pattern.test(secret)) return [`${name} must ${rule} in production`]
  if (new Set(secret).size >= MIN_DISTINCT_CHARACTERS) return []
  return [`${name} is too easy to guess: use at least ${MIN_DISTINCT_CHARACTERS} different characters`]
}
