import { DURATION_PATTERN, durationMs } from '../relay/config/schema-kinds.js'
import { type Environment, readSettings } from '../shared/env.js'
import { secretKey, signJwt } from '../shared/jwt.js'
import { secret } from '../shared/setting-kinds.js'

export interface TokenRequest {
  readonly user: string
  /** A duration such as `90s`, `15m` or `1h`. */
  readonly ttl: string
  readonly channels: readonly string[]
  /** JSON that other clients see in presence. */
  readonly info: string | undefined
}

export type Token =
  | { readonly text: string }
  /** `isUsage`: an argument is wrong, not the environment. */
  | { readonly error: string; readonly isUsage: boolean }

const settings = { REALTIME_HMAC_SECRET: secret({ about: 'signs the token', fallback: null }) }

/** A connection token for the relay, signed with `REALTIME_HMAC_SECRET` of the environment or the file that it names. */
export const relayToken = ({ user, ttl, channels, info }: TokenRequest, environment: Environment): Token => {
  // The relay treats a token without a user as an anonymous one.
  if (user === '') return { error: '--user must not be empty', isUsage: true }
  if (!new RegExp(DURATION_PATTERN).test(ttl) || durationMs(ttl) < 1000) {
    return { error: '--ttl must be a duration of at least one second, such as 90s, 15m or 1h', isUsage: true }
  }
  let parsedInfo: unknown
  try {
    parsedInfo = info === undefined ? undefined : JSON.parse(info)
  } catch {
    return { error: '--info must be JSON', isUsage: true }
  }
  const errors: string[] = []
  const { REALTIME_HMAC_SECRET } = readSettings(settings, environment, errors)
  if (errors[0] !== undefined) return { error: errors[0], isUsage: false }
  if (REALTIME_HMAC_SECRET === null) return { error: 'REALTIME_HMAC_SECRET is required', isUsage: false }
  const claims = {
    sub: user,
    ...(channels.length > 0 && { channels }),
    ...(parsedInfo !== undefined && { info: parsedInfo })
  }
  return {
    text: signJwt(claims, secretKey(REALTIME_HMAC_SECRET), { lifetimeSeconds: Math.floor(durationMs(ttl) / 1000) })
  }
}
