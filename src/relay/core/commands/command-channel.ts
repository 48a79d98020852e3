import { type Caller, channelNameError, isTooLong, type ResolvedChannel, resolveChannel } from '../channel-names.js'
import { ERROR_BAD_REQUEST, ERROR_BINARY_CHANNEL, ReplyError } from '../codes.js'
import type { Client } from '../session/client.js'

/** The channel of a command, or the error of its name. */
export const resolveFor = ({ context, codec }: Client, channel: string): ResolvedChannel | ReplyError => {
  const { channelRules } = context
  const resolved = resolveChannel(channel, channelRules)
  if (resolved instanceof ReplyError) return resolved
  if (resolved.options.publicationDataFormat === 'binary' && !codec.allowsBinary) return ERROR_BINARY_CHANNEL
  return isTooLong(channel, channelRules)
    ? ERROR_BAD_REQUEST
    : (channelNameError(channel, resolved, channelRules) ?? resolved)
}

export const callerOn = (client: Client, channel: string): Caller => ({
  user: client.user,
  insecure: client.context.clientOptions.insecure,
  isSubscribed: client.subscriptions.has(channel)
})
