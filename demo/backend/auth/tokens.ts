import { AppTokenVerifier, createAppToken } from '../../../src/shared/app-token.js'
import { secretKey, signJwt } from '../../../src/shared/jwt.js'
import { ExpiredToken, InvalidToken } from '../../../src/shared/token-errors.js'
import type { World } from '../records.js'
import type { Account, Accounts } from './accounts.js'
import type { Caller } from './permissions.js'

export const RELAY_LIFETIME_SECONDS = 60 * 60

export type TokenFormat = 'jwt' | 'legacy'

/** App tokens in both formats, signed with TOKEN_SECRET, and relay tokens, signed with the relay's own secret. */
export class Tokens {
  readonly #accounts: Accounts
  readonly #world: World
  readonly #appKey
  readonly #relayKey
  readonly #verifier: AppTokenVerifier

  constructor(accounts: Accounts, world: World, secrets: { readonly app: string; readonly relay: string }) {
    this.#accounts = accounts
    this.#world = world
    this.#appKey = secretKey(secrets.app)
    this.#relayKey = secretKey(secrets.relay)
    this.#verifier = new AppTokenVerifier(this.#appKey, { now: () => world.now().getTime() })
  }

  /** The `data` of a login's answer. */
  session(account: Account, format: TokenFormat, expiresIn: number) {
    const { userId, email, displayName, role, permissions, generation, mustChangePassword } = account
    const claims = { userId, email, displayName, role, generation, ...(mustChangePassword && { mustChangePassword }) }
    const token = createAppToken(claims, this.#appKey, {
      format,
      lifetimeSeconds: expiresIn,
      nowMs: this.#world.now().getTime()
    })
    return { token, user: { userId, email, displayName, role, permissions: [...permissions] }, expiresIn }
  }

  /** Who sends this Authorization header; null for nobody, whatever the reason. */
  async callerOf(authorization: string | undefined): Promise<Caller | null> {
    const [, token] = /^Bearer (\S+)$/.exec(authorization ?? '') ?? []
    if (token === undefined) return null
    try {
      const { userId, ...claims } = this.#verifier.verify(token).claims
      return typeof userId === 'string' ? await this.#accounts.byToken(userId, claims) : null
    } catch (error) {
      if (error instanceof InvalidToken || error instanceof ExpiredToken) return null
      throw error
    }
  }

  relayToken({ userId }: Caller): string {
    return signJwt({ sub: userId }, this.#relayKey, {
      lifetimeSeconds: RELAY_LIFETIME_SECONDS,
      nowMs: this.#world.now().getTime()
    })
  }
}
