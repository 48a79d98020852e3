import { channelSet, claimRules, type Outcome, refusalOf } from './connect.js'
import type { Connection } from './connection.js'
import * as disconnect from './disconnect.js'
import { expiryAt, ttlSeconds } from './expiry.js'
import { expiryFields, objectText, replyText } from './protocol.js'
import { refreshRequest } from './requests.js'
import { connectionClaims } from './tokens.js'

/** A new token for a live connection. The same user goes on; nothing else may have changed. */
export const refresh = (connection: Connection, request: unknown, id: number): Outcome => {
  const parsed = refreshRequest(request)
  if (parsed === null || parsed.token === '') return disconnect.MALFORMED
  const { checkToken, nowMs } = connection.context
  const tokenRefused = refusalOf(connection)
  const checked = checkToken(parsed.token, nowMs(), tokenRefused)
  if (checked === 'expired') return disconnect.CONNECTION_EXPIRED
  if (checked === 'invalid') return disconnect.INVALID_TOKEN
  const claims = connectionClaims(checked, claimRules(connection))
  if (claims === null || claims.user !== connection.user) {
    tokenRefused(claims === null ? 'bad-claims' : 'other-user')
    return disconnect.INVALID_TOKEN
  }
  // Coming back, the client gets the new set.
  if (channelSet(claims) !== connection.tokenChannels) return disconnect.INSUFFICIENT_STATE

  connection.info = claims.info
  connection.reply(replyText(id, 'refresh', extend(connection, claims.expiresAt)))
  return null
}

/** Moves the end of a connection; 0 for never. The result names the client: the official one forgets its own name else. */
export const extend = (connection: Connection, expiresAtSeconds: number): string => {
  connection.expiry = expiryAt(expiresAtSeconds * 1000, connection.context)
  connection.scheduleWake()
  const ttl = expiresAtSeconds > 0 ? ttlSeconds(expiresAtSeconds * 1000, connection.context.nowMs()) : 0
  return objectText(`,"client":"${connection.client}"${expiryFields(ttl)}`)
}
