import type { Logger } from 'pino'
import { type Identity, identityOf } from './identity.js'
import type { ProviderDiscovery } from './provider-discovery.js'
import { faultOf, providerFaultOf } from './provider-fault.js'
import type { ProviderSession } from './provider-session.js'
import type { ProviderTokens } from './relying-party.js'
import type { SessionMemory } from './session-memory.js'

export interface SessionRefreshParts {
  readonly log: Logger
  readonly memory: SessionMemory
  readonly discovery: ProviderDiscovery
  readonly groupsClaim: string
  readonly now: () => number
}

/** What the provider says of a person now: something else than before, that it no longer vouches for them, or nothing. */
export type News = Identity | 'ended' | null

/** Asks the provider where its tokens have run out and can be had anew. Never throws: no answer is no news. */
export const sessionRefresh = (parts: SessionRefreshParts) => {
  const { memory, now, log } = parts

  return async (session: ProviderSession, requestId: string): Promise<News> => {
    const tokens = await memory.tokensOf(session.id)
    if (tokens?.refreshToken == null || tokens.expiresAt > now()) return null
    const news = await ask(parts, session, tokens, tokens.refreshToken).catch((error) => {
      log.warn({ requestId, subject: session.subject, provider: faultOf(error) }, 'provider tokens were not refreshed')
      // A provider that is away has not said no: what it said before counts until the session ends.
      return providerFaultOf(error) === 'used' ? 'ended' : null
    })
    if (news === 'ended')
      await memory
        .end({ kind: 'id', value: session.id })
        .catch((error) => log.warn({ requestId, err: error }, 'other gateways were not told'))
    return news
  }
}

const ask = async (
  { memory, discovery, groupsClaim }: SessionRefreshParts,
  session: ProviderSession,
  tokens: ProviderTokens,
  refreshToken: string
): Promise<News> => {
  const provider = await discovery.current()
  if (provider === null) return null
  const granted = await provider.refresh(tokens, refreshToken, session.subject)
  await memory.keepTokens(session.id, granted.tokens)
  const { identity, fault } = identityOf(await granted.claims(), groupsClaim)
  if (fault === 'unconfirmed-email') return 'ended'
  // An answer without claims is no news. The session at the provider stays the one that it was.
  return identity === null ? null : { ...identity, providerSession: session.providerSession }
}
