import { DURATION_PATTERN, durationMs } from '../relay/config/schema-kinds.js'
import { createAppToken } from '../shared/app-token.js'
import { type Environment, readSettings } from '../shared/env.js'
import { secretKey, signJwt } from '../shared/jwt.js'
import { secret } from '../shared/setting-kinds.js'
import { CommandError, UsageError } from './command.js'

export interface TokenRequest {
  readonly user: string
  /** A duration such as `90s`, `15m` or `1h`. */
  readonly ttl: string
  /** The claims of this kind of token. */
  readonly claims: Readonly<Record<string, unknown>>
}

type SecretName = keyof typeof settings

const settings = {
  REALTIME_HMAC_SECRET: secret({ about: 'signs tokens for the relay', fallback: null }),
  API_SECRET: secret({ about: 'signs app tokens', fallback: null })
}

/** A connection or subscription token for the relay. Throws `UsageError` and `CommandError`. */
export const relayToken = (request: TokenRequest, environment: Environment): string => {
  const lifetimeSeconds = lifetimeOf(request)
  const key = keyOf('REALTIME_HMAC_SECRET', environment)
  return signJwt({ sub: request.user, ...request.claims }, key, { lifetimeSeconds })
}

/** An app token as a backend would issue it. Throws `UsageError` and `CommandError`. */
export const appToken = (request: TokenRequest, environment: Environment): string => {
  const lifetimeSeconds = lifetimeOf(request)
  const key = keyOf('API_SECRET', environment)
  return createAppToken({ sub: request.user, ...request.claims }, key, { format: 'jwt', lifetimeSeconds })
}

/** Also checks the user. */
const lifetimeOf = ({ user, ttl }: TokenRequest): number => {
  // The relay treats a token without a user as an anonymous one.
  if (user === '') throw new UsageError('--user must not be empty')
  if (!new RegExp(DURATION_PATTERN).test(ttl) || durationMs(ttl) < 1000)
    throw new UsageError('--ttl must be a duration of at least one second, such as 90s, 15m or 1h')
  return Math.floor(durationMs(ttl) / 1000)
}

const keyOf = (name: SecretName, environment: Environment) => {
  const errors: string[] = []
  const { [name]: text } = readSettings({ [name]: settings[name] }, environment, errors)
  if (errors.length > 0) throw new CommandError(errors)
  if (typeof text !== 'string') throw new CommandError([`${name} is required`])
  return secretKey(text)
}
