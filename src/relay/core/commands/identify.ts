import { isPast } from '../clocks.js'
import {
  DISCONNECT_INVALID_TOKEN,
  DISCONNECT_MALFORMED,
  DISCONNECT_NOT_PERMITTED,
  Disconnect,
  ERROR_EXPIRED,
  ERROR_INTERNAL,
  ERROR_TOKEN_EXPIRED,
  ReplyError
} from '../codes.js'
import type { ConnectResult, EventData } from '../event-proxies.js'
import { after, type MaybePromise } from '../maybe-promise.js'
import type { ConnectCommand } from '../protocol.js'
import type { Client } from '../session/client.js'
import {
  type CheckedToken,
  claimsRejection,
  connectionClaims,
  hasEnded,
  type TokenRejected,
  tokenRejection
} from '../session/tokens.js'

/** The user of a connection, and what the token or backend says about the connection. */
export interface Identity extends ConnectResult {
  readonly isByBackend: boolean
}

const ANONYMOUS: Identity = {
  user: '',
  expiresAt: 0,
  info: null,
  data: null,
  meta: null,
  subscriptions: new Map(),
  isByBackend: false
}

/** The user of a connection. The backend is asked only if the client sends no token, not even an invalid one. */
export const identify = (
  client: Client,
  command: ConnectCommand,
  data: () => EventData | ReplyError
): MaybePromise<Identity | ReplyError | Disconnect> =>
  command.token === '' ? identifyWithoutToken(client, command, data) : identifyByToken(client, command.token)

const identifyWithoutToken = (
  client: Client,
  command: ConnectCommand,
  data: () => EventData | ReplyError
): MaybePromise<Identity | ReplyError | Disconnect> =>
  after(
    client.context.clientOptions.connectProxy ? askBackend(client, command, data()) : null,
    (outcome) => outcome ?? anonymousUser(client)
  )

const anonymousUser = (client: Client): Identity | Disconnect => {
  const { insecure, allowAnonymousConnectWithoutToken } = client.context.clientOptions
  if (insecure || allowAnonymousConnectWithoutToken) return ANONYMOUS
  const user = userOfHeader(client)
  if (user !== '') return { ...ANONYMOUS, user }
  tokenRejection(client)('missing')
  return DISCONNECT_MALFORMED
}

/** The user that the reverse proxy names; '' for none, and for several: a proxy may add its header after one of the client. */
const userOfHeader = ({ context: { clientOptions }, transport }: Client): string => {
  const { userIdHeader } = clientOptions
  const values = userIdHeader === null ? [] : (transport.requestHeaders?.[userIdHeader] ?? [])
  // Node.js decodes headers as Latin-1.
  return values.length === 1 ? Buffer.from(values[0] ?? '', 'latin1').toString() : ''
}

/** Null if the backend has no result. */
const askBackend = async (
  { context, events }: Client,
  { name, version, subs }: ConnectCommand,
  data: EventData | ReplyError
): Promise<Identity | ReplyError | Disconnect | null> => {
  if (data instanceof ReplyError) return data
  const channels = [...subs.keys()]
  const outcome = await events.ask((source) =>
    context.eventProxies.connect({ ...source, data, name, version, channels })
  )
  if (outcome === null || outcome instanceof ReplyError || outcome instanceof Disconnect) return outcome
  return isPast(outcome.expiresAt, context) ? ERROR_EXPIRED : { ...outcome, isByBackend: true }
}

/** Without a promise if the token can be checked at once: after a restart, all clients connect at the same time. */
const identifyByToken = (client: Client, token: string): MaybePromise<Identity | ReplyError | Disconnect> => {
  const { checkToken, nowMs } = client.context
  const rejected = tokenRejection(client)
  return after(checkToken(token, nowMs(), rejected), (checked) => identityOf(client, checked, rejected))
}

const identityOf = (
  { context: { clientOptions, nowMs } }: Client,
  checked: CheckedToken,
  rejected: TokenRejected
): Identity | ReplyError | Disconnect => {
  if (checked === 'unavailable') return ERROR_INTERNAL
  if (checked === 'expired') return ERROR_TOKEN_EXPIRED
  if (checked === 'invalid') return DISCONNECT_INVALID_TOKEN
  const claims = connectionClaims(checked, clientOptions.token)
  if (claims === null) {
    rejected(claimsRejection(checked, clientOptions.token))
    return DISCONNECT_INVALID_TOKEN
  }
  // As in Centrifugo, connections do not expire in insecure mode.
  if (clientOptions.insecure) return { ...claims, expiresAt: 0, data: null, isByBackend: false }
  if (hasEnded(checked, nowMs())) {
    rejected('expired')
    return ERROR_EXPIRED
  }
  if (claims.user !== '' || !clientOptions.disallowAnonymousConnectionTokens)
    return { ...claims, data: null, isByBackend: false }
  rejected('no-user')
  return DISCONNECT_NOT_PERMITTED
}
