import {
  ERROR_BAD_REQUEST,
  ERROR_NO_PRESENCE,
  ERROR_NOT_AVAILABLE,
  ERROR_UNKNOWN_CHANNEL,
  type ReplyError
} from './codes.js'
import type { ChannelOptions, ChannelRules, HistoryOptions, MapOptions } from './options.js'

/** Properties of a channel that follow from its name. */
export interface ResolvedChannel {
  /** '' for a channel without a namespace. */
  readonly namespace: string
  readonly options: ChannelOptions
  /** Requires a subscription token. */
  readonly isPrivate: boolean
}

/** Error 102 if the namespace does not exist. */
export const resolveChannel = (channel: string, rules: ChannelRules): ResolvedChannel | ReplyError => {
  // Internal channels.
  if (channel.charCodeAt(0) === 0) return ERROR_UNKNOWN_CHANNEL
  const isPrivate = channel.startsWith(rules.privatePrefix)
  const namespace = namespaceOf(channel, rules)
  if (namespace === '') return { namespace, options: rules.withoutNamespace, isPrivate }
  const options = rules.namespaces.get(namespace)
  return options === undefined ? ERROR_UNKNOWN_CHANNEL : { namespace, options, isPrivate }
}

/** Namespace of a requested channel, as a metric label; '' if it does not exist. */
export const knownNamespace = (channel: unknown, rules: ChannelRules): string => {
  if (typeof channel !== 'string') return ''
  const namespace = namespaceOf(channel, rules)
  return rules.namespaces.has(namespace) ? namespace : ''
}

/** The part after the private prefix, up to the first boundary. */
const namespaceOf = (channel: string, { namespaceBoundary, privatePrefix }: ChannelRules): string => {
  const start = channel.startsWith(privatePrefix) ? privatePrefix.length : 0
  const end = channel.indexOf(namespaceBoundary, start)
  return end === -1 ? '' : channel.slice(start, end)
}

export const isTooLong = (channel: string, { maxLength }: ChannelRules): boolean =>
  // A UTF-16 code unit has at most three bytes in UTF-8, so the bytes of most names need not be counted.
  channel.length * 3 > maxLength && Buffer.byteLength(channel) > maxLength

/** Error 107 if the namespace does not allow the name, else null. */
export const channelNameError = (
  channel: string,
  { namespace, options }: ResolvedChannel,
  rules: ChannelRules
): ReplyError | null => {
  if (options.channelRegex === null) return isPrintableAscii(channel) ? null : ERROR_BAD_REQUEST
  const start = namespace === '' ? 0 : channel.indexOf(rules.namespaceBoundary) + rules.namespaceBoundary.length
  return options.channelRegex.test(channel.slice(start)) ? null : ERROR_BAD_REQUEST
}

const isPrintableAscii = (text: string): boolean => /^[\x20-\x7e]*$/.test(text)

/** Whether the channel is limited to users, as `chat:room#42,43`, and this user is one of them. */
export const isUserListed = (channel: string, user: string, { userBoundary, userSeparator }: ChannelRules): boolean => {
  const boundary = channel.lastIndexOf(userBoundary)
  return (
    boundary !== -1 &&
    user !== '' &&
    channel
      .slice(boundary + userBoundary.length)
      .split(userSeparator)
      .includes(user)
  )
}

const namesUsers = (channel: string, { userBoundary }: ChannelRules): boolean => channel.includes(userBoundary)

/** Name of the user's personal channel. */
export const personalChannel = (user: string, namespace: string, rules: ChannelRules): string =>
  `${namespace === '' ? '' : namespace + rules.namespaceBoundary}${rules.userBoundary}${user}`

export interface Caller {
  readonly user: string
  /** All permission checks are off. */
  readonly insecure: boolean
  readonly isSubscribed: boolean
}

/** A permission can be granted to clients, to subscribers of the channel and to anonymous users separately. */
const isAllowed = (forClient: boolean, forSubscriber: boolean, forAnonymous: boolean, caller: Caller): boolean => {
  if (caller.insecure) return true
  if (caller.user === '' && !forAnonymous) return false
  return forClient || (forSubscriber && caller.isSubscribed)
}

/** `backend`: a proxy decides. */
export type Access = 'granted' | 'rejected' | 'backend'

const accessIf = (isGranted: boolean): Access => (isGranted ? 'granted' : 'rejected')

/** Whether the client may subscribe without a subscription token. */
export const accessTo = (
  channel: string,
  { options, isPrivate }: ResolvedChannel,
  caller: Caller,
  rules: ChannelRules
): Access => {
  if (isPrivate && !caller.insecure) return 'rejected'
  if (options.allowUserLimitedChannels && namesUsers(channel, rules)) {
    return accessIf(caller.insecure || isUserListed(channel, caller.user, rules))
  }
  // The permissions of the namespace are for channels that no backend protects.
  if (options.subscribeProxy !== null) return 'backend'
  return accessIf(isAllowed(options.allowSubscribeForClient, false, options.allowSubscribeForAnonymous, caller))
}

export const mayPublish = (options: ChannelOptions, caller: Caller): boolean =>
  isAllowed(options.allowPublishForClient, options.allowPublishForSubscriber, options.allowPublishForAnonymous, caller)

/** Of a map, not of a stream. */
export const mayWrite = (options: MapOptions, caller: Caller): boolean =>
  isAllowed(options.allowPublishForClient, options.allowPublishForSubscriber, options.allowPublishForAnonymous, caller)

export const mayRemove = (options: MapOptions, caller: Caller): boolean =>
  isAllowed(options.allowRemoveForClient, options.allowRemoveForSubscriber, options.allowRemoveForAnonymous, caller)

export const maySeePresence = (options: ChannelOptions, caller: Caller): boolean =>
  isAllowed(
    options.allowPresenceForClient,
    options.allowPresenceForSubscriber,
    options.allowPresenceForAnonymous,
    caller
  )

export const maySeeHistory = (options: ChannelOptions, caller: Caller): boolean =>
  isAllowed(options.allowHistoryForClient, options.allowHistoryForSubscriber, options.allowHistoryForAnonymous, caller)

export const hasHistory = ({ historySize, historyTtlMs }: HistoryOptions): boolean =>
  historySize > 0 && historyTtlMs > 0

/** Null if the namespace has presence. Maps have members instead, which need other options. */
export const presenceError = ({ presence, map }: ChannelOptions): ReplyError | null => {
  if (presence) return null
  return map === null ? ERROR_NO_PRESENCE : ERROR_NOT_AVAILABLE
}

/** Whether subscriptions to a channel and its stored data stay valid after its options were changed. */
export const isSameKind = (one: ChannelOptions, other: ChannelOptions): boolean =>
  one.subscriptionType === other.subscriptionType && one.map?.mode === other.map?.mode
