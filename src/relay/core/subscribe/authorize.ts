import { accessTo, type Caller, type ResolvedChannel } from '../channel-names.js'
import { isPast } from '../clocks.js'
import {
  DISCONNECT_INVALID_TOKEN,
  Disconnect,
  ERROR_BINARY_CHANNEL,
  ERROR_EXPIRED,
  ERROR_INTERNAL,
  ERROR_PERMISSION_DENIED,
  ERROR_TOKEN_EXPIRED,
  ReplyError
} from '../codes.js'
import type { EventData, SubscribeEventResult } from '../event-proxies.js'
import { after, type MaybePromise } from '../maybe-promise.js'
import { NO_OVERRIDE } from '../options.js'
import type { SubscribeCommand } from '../protocol.js'
import type { Client } from '../session/client.js'
import {
  type CheckedToken,
  claimsRejection,
  hasEnded,
  type SubscriptionClaims,
  subscriptionClaims,
  type TokenRejected,
  type TokenRejectionReason,
  tokenRejection,
  userRejection
} from '../session/tokens.js'

const PLAIN_GRANT: SubscribeEventResult = { info: null, data: null, override: NO_OVERRIDE, expiresAt: 0 }

/** Whether a client may subscribe: its token decides, else the name of the channel, the backend, or the namespace. */
export const authorize = (
  client: Client,
  { channel, token }: SubscribeCommand,
  resolved: ResolvedChannel,
  data: () => EventData | ReplyError
): MaybePromise<SubscribeEventResult | ReplyError | Disconnect> => {
  if (token !== '') return checkSubscriptionToken(client, channel, token)
  const { context, user } = client
  const caller: Caller = { user, insecure: context.clientOptions.insecure, isSubscribed: false }
  const access = accessTo(channel, resolved, caller, context.channelRules)
  if (access === 'backend') return askBackend(client, channel, resolved, data())
  return access === 'granted' ? PLAIN_GRANT : ERROR_PERMISSION_DENIED
}

const askBackend = async (
  { context, events, codec }: Client,
  channel: string,
  { options }: ResolvedChannel,
  data: EventData | ReplyError
): Promise<SubscribeEventResult | ReplyError | Disconnect> => {
  if (data instanceof ReplyError) return data
  const { subscribeProxy: proxy, publicationDataFormat } = options
  if (proxy === null) return ERROR_PERMISSION_DENIED
  // The client could not read the publications, even with permission.
  if (publicationDataFormat === 'binary' && !codec.allowsBinary) return ERROR_BINARY_CHANNEL
  const outcome = await events.ask((source) => context.eventProxies.subscribe(proxy, { ...source, channel, data }))
  if (outcome instanceof ReplyError || outcome instanceof Disconnect) return outcome
  return isPast(outcome.expiresAt, context) ? ERROR_EXPIRED : outcome
}

/** A valid token grants the subscription regardless of the namespace's permissions. */
export const checkSubscriptionToken = (
  client: Client,
  channel: string,
  token: string
): MaybePromise<SubscriptionClaims | ReplyError | Disconnect> => {
  const { checkSubscriptionToken: check, nowMs } = client.context
  const rejected = tokenRejection(client)
  return after(check(token, nowMs(), rejected), (checked) => claimsFor(client, channel, checked, rejected))
}

const claimsFor = (
  client: Client,
  channel: string,
  checked: CheckedToken,
  rejected: TokenRejected
): SubscriptionClaims | ReplyError | Disconnect => {
  if (checked === 'unavailable') return ERROR_INTERNAL
  if (checked === 'expired') return ERROR_TOKEN_EXPIRED
  if (checked === 'invalid') return ERROR_PERMISSION_DENIED
  const { clientOptions, nowMs } = client.context
  const claims = subscriptionClaims(checked, clientOptions.subscriptionToken)
  if (claims === null) {
    rejected(claimsRejection(checked, clientOptions.subscriptionToken))
    return ERROR_PERMISSION_DENIED
  }
  const mismatch = subscriptionMismatch(client, channel, claims)
  if (mismatch !== null) {
    rejected(mismatch)
    return DISCONNECT_INVALID_TOKEN
  }
  if (!hasEnded(checked, nowMs())) return claims
  rejected('expired')
  return ERROR_EXPIRED
}

const subscriptionMismatch = (
  { user, id }: Client,
  channel: string,
  claims: SubscriptionClaims
): TokenRejectionReason | null => {
  if (claims.user !== user) return userRejection(claims)
  if (claims.client !== '' && claims.client !== id) return 'other-client'
  return claims.channel === channel ? null : 'other-channel'
}
