import { Check } from '@sinclair/typebox/value'
import { GeneralSettingsSchema } from '../../../schemas/management.js'
import { AppTokenVerifier, createAppToken } from '../../../src/shared/app-token.js'
import { secretKey, signJwt } from '../../../src/shared/jwt.js'
import { ExpiredToken, InvalidToken } from '../../../src/shared/token-errors.js'
import { readSetting } from '../settings.js'
import type { Fields, World } from '../world.js'
import type { Account } from './accounts.js'

export const RELAY_LIFETIME_SECONDS = 60 * 60
const USUAL_SECONDS = 8 * 60 * 60
const REMEMBERED_SECONDS = 7 * 24 * 60 * 60

export type Tokens = ReturnType<typeof createTokens>

/** App tokens in both formats, signed with TOKEN_SECRET, and relay tokens, signed with the relay's own secret. */
export const createTokens = (appSecret: string, relaySecret: string, now: () => Date) => {
  const appKey = secretKey(appSecret)
  const relayKey = secretKey(relaySecret)
  const verifier = new AppTokenVerifier(appKey, { now: () => now().getTime() })
  return {
    /** The `data` of a login response. */
    session: (account: Account, format: 'jwt' | 'legacy', expiresIn: number) => {
      const { permissions, mustChangePassword, generation, ...user } = account
      const claims = { ...user, generation, ...(mustChangePassword && { mustChangePassword }) }
      const token = createAppToken(claims, appKey, { format, lifetimeSeconds: expiresIn, nowMs: now().getTime() })
      return { token, user: { ...user, permissions }, expiresIn }
    },

    /** The claims of the token in an Authorization header, if it is valid. */
    claimsOf: (authorization: string | undefined): Fields => {
      const [, token] = /^Bearer (\S+)$/.exec(authorization ?? '') ?? []
      try {
        return token === undefined ? {} : verifier.verify(token).claims
      } catch (error) {
        if (error instanceof InvalidToken || error instanceof ExpiredToken) return {}
        throw error
      }
    },

    relayToken: (userId: string): string =>
      signJwt({ sub: userId }, relayKey, { lifetimeSeconds: RELAY_LIFETIME_SECONDS, nowMs: now().getTime() })
  }
}

/** The lifetime of a new session according to the settings, or the default. */
export const sessionLifetimeSeconds = async (world: Pick<World, 'database'>, remembered: boolean): Promise<number> => {
  const { sessionTimeoutMinutes: minutes } = await readSetting(world, 'general')
  // An existing database may hold a value that is no longer allowed.
  const isSet = typeof minutes === 'number' && Check(GeneralSettingsSchema.properties.sessionTimeoutMinutes, minutes)
  return isSet ? minutes * 60 : remembered ? REMEMBERED_SECONDS : USUAL_SECONDS
}
