import { randomBytes } from 'node:crypto'
import { AddressSet } from '../../shared/ip-address.js'
import { type SecretForm, weaknesses } from '../../shared/secret-strength.js'

/** A possible source of a secret. */
export interface SecretSource {
  /** As it is named in error messages. */
  readonly name: string
  readonly text: string | null | undefined
  readonly form: SecretForm
}

export interface SecretRule {
  readonly isProduction: boolean
  /** The secret is not used, because the insecure option is on. */
  readonly isOptional: boolean
  /** A source is malformed, which has been reported already. */
  readonly isMalformed: boolean
}

/** The form of secrets in the environment, which the gateway and the backend share. */
export const SECRET_FORM: SecretForm = { pattern: /^[0-9a-f]{64}$/i, rule: 'be 64 hex characters' }

/** The form of secrets in the file, which may come from Centrifugo: any text of 32 characters, such as 16 bytes in hex. */
export const FILE_SECRET_FORM: SecretForm = { pattern: /^.{32,}$/su, rule: 'have at least 32 characters' }

const RANDOM_BYTES = 32

/** The first source with a value. An optional secret becomes random, so that an empty secret never matches. */
export const chooseSecret = (sources: readonly SecretSource[], rule: SecretRule, errors: string[]): string => {
  const chosen = sources.find(({ text }) => typeof text === 'string')
  if (typeof chosen?.text !== 'string') {
    if (!rule.isOptional && !rule.isMalformed) errors.push(`${sources[0]?.name} is required`)
    return randomBytes(RANDOM_BYTES).toString('hex')
  }
  if (rule.isProduction) errors.push(...weaknesses(chosen.name, chosen.text, chosen.form))
  return chosen.text
}

/** Whether the rules of production apply. Without `NODE_ENV` they do, unless only programs of this machine can connect. */
export const isProduction = (nodeEnvironment: string | null, host: string): boolean =>
  nodeEnvironment === 'production' || (nodeEnvironment === null && host !== 'localhost' && !LOOPBACK.has(host))

const LOOPBACK = new AddressSet(['loopback'])

/** For a relay without `NODE_ENV`: what to set, if one of these errors is about a rule of production. */
export const modeHint = (errors: readonly string[]): string[] =>
  errors.some((error) => / in production$| is too easy to guess: /.test(error))
    ? [
        'NODE_ENV is required for a relay that other machines can reach: set NODE_ENV=production, or NODE_ENV=development to accept these'
      ]
    : []
