/** The form that a secret must have in production. */
export interface SecretForm {
  readonly pattern: RegExp
  /** Completes "must …". */
  readonly rule: string
}

/** Rejects secrets such as "0000…" and "abab…". */
const MIN_DISTINCT_CHARACTERS = 4

// Values of examples and templates, which are public.
const PLACEHOLDER =
  /change[-_. ]?(?:me|this|it)|replace[-_. ]?(?:me|this|with)|place[-_. ]?holder|your[-_. ]?(?:own|api|session|jwt)?[-_. ]?(?:secret|key)/i

/** Why a secret is too easy to guess, or null if it is not. Contains no part of the secret. */
export const guessableReason = (secret: string): string | null => {
  if (new Set(secret).size < MIN_DISTINCT_CHARACTERS)
    return `use at least ${MIN_DISTINCT_CHARACTERS} different characters`
  return PLACEHOLDER.test(secret) ? 'it contains a placeholder; openssl rand -hex 32 generates a value' : null
}

/** Reasons why a secret is too weak for production. */
export const weaknesses = (name: string, secret: string, { pattern, rule }: SecretForm): readonly string[] => {
  if (!pattern.test(secret)) return [`${name} must ${rule} in production`]
  const reason = guessableReason(secret)
  return reason === null ? [] : [`${name} is too easy to guess: ${reason}`]
}
