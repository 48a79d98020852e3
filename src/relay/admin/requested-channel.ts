import { isTooLong, type ResolvedChannel, resolveChannel } from '../core/channel-names.js'
import { ReplyError } from '../core/codes.js'
import type { Relay } from '../core/relay.js'
import type { AdminCall } from './guard.js'

/** The channel of a request. Responds with an error and returns null if there is no such channel. */
export const requestedChannel = (
  call: AdminCall,
  field: string,
  relay: Relay
): [name: string, resolved: ResolvedChannel] | null => {
  const name = call.query.get(field) ?? ''
  const resolved = resolveChannel(name, relay.channelRules)
  if (name === '' || isTooLong(name, relay.channelRules)) call.reject(400, 'BAD_REQUEST', `${field} must be a channel`)
  else if (resolved instanceof ReplyError) call.reject(404, 'UNKNOWN_CHANNEL', 'Unknown namespace.')
  else return [name, resolved]
  return null
}
