import { ERROR_BAD_REQUEST, ERROR_UNKNOWN_CHANNEL, type ReplyError } from './codes.js'
import type { ChannelOptions, ChannelRules, HistoryOptions } from './options.js'

/** What a channel's name says about it. */
export interface ResolvedChannel {
  /** '' for the default namespace. */
  readonly namespace: string
  readonly options: ChannelOptions
  /** Needs a subscription token. */
  readonly isPrivate: boolean
}

/** The namespace and its rules; error 102 where there is no such namespace. */
export const resolveChannel = (channel: string, rules: ChannelRules): ResolvedChannel | ReplyError => {
  const isPrivate = rules.privatePrefix !== '' && channel.startsWith(rules.privatePrefix)
  const namespace = namespaceOf(channel, rules)
  if (namespace === '') return { namespace, options: rules.withoutNamespace, isPrivate }
  const options = rules.namespaces.get(namespace)
  return options === undefined ? ERROR_UNKNOWN_CHANNEL : { namespace, options, isPrivate }
}

/** The namespace of a channel that somebody names, for counting: '' for one that there is not. */
export const knownNamespace = (channel: unknown, rules: ChannelRules): string => {
  if (typeof channel !== 'string') return ''
  const namespace = namespaceOf(channel, rules)
  return rules.namespaces.has(namespace) ? namespace : ''
}

/** Without the sign of a private channel, up to the first boundary. */
const namespaceOf = (channel: string, { namespaceBoundary, privatePrefix }: ChannelRules): string => {
  const start = privatePrefix !== '' && channel.startsWith(privatePrefix) ? privatePrefix.length : 0
  const end = namespaceBoundary === '' ? -1 : channel.indexOf(namespaceBoundary, start)
  return end === -1 ? '' : channel.slice(start, end)
}

export const isTooLong = (channel: string, { maxLength }: ChannelRules): boolean =>
  // Three bytes at most for each of JavaScript's characters, so most names need no counting.
  maxLength > 0 && channel.length * 3 > maxLength && Buffer.byteLength(channel) > maxLength

/** Error 107 for a name that its namespace does not allow, else null. */
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

/** Whether the name lists its users, as `floor:room#42,43` does, and this one is among them. */
export const isUserListed = (channel: string, user: string, { userBoundary }: ChannelRules): boolean => {
  const boundary = userBoundary === '' ? -1 : channel.lastIndexOf(userBoundary)
  return (
    boundary !== -1 &&
    user !== '' &&
    channel
      .slice(boundary + userBoundary.length)
      .split(',')
      .includes(user)
  )
}

export const namesUsers = (channel: string, { userBoundary }: ChannelRules): boolean =>
  userBoundary !== '' && channel.includes(userBoundary)

/** The channel that only this user's connections are on. */
export const personalChannel = (user: string, namespace: string, rules: ChannelRules): string =>
  `${namespace === '' ? '' : namespace + rules.namespaceBoundary}${rules.userBoundary}${user}`

export interface Caller {
  readonly user: string
  /** Everything is allowed. */
  readonly insecure: boolean
  readonly isSubscribed: boolean
}

/** A permission is for clients, for subscribers of the channel, and for those without a name; each is opened apart. */
const isOpen = (forClient: boolean, forSubscriber: boolean, forAnonymous: boolean, caller: Caller): boolean => {
  if (caller.insecure) return true
  if (caller.user === '' && !forAnonymous) return false
  return forClient || (forSubscriber && caller.isSubscribed)
}

export const maySubscribe = (
  channel: string,
  options: ChannelOptions,
  caller: Caller,
  rules: ChannelRules
): boolean => {
  if (options.allowUserLimitedChannels && namesUsers(channel, rules)) {
    return caller.insecure || isUserListed(channel, caller.user, rules)
  }
  return isOpen(options.allowSubscribeForClient, false, options.allowSubscribeForAnonymous, caller)
}

export const mayPublish = (options: ChannelOptions, caller: Caller): boolean =>
  isOpen(options.allowPublishForClient, options.allowPublishForSubscriber, options.allowPublishForAnonymous, caller)

export const maySeePresence = (options: ChannelOptions, caller: Caller): boolean =>
  isOpen(options.allowPresenceForClient, options.allowPresenceForSubscriber, options.allowPresenceForAnonymous, caller)

export const maySeeHistory = (options: ChannelOptions, caller: Caller): boolean =>
  isOpen(options.allowHistoryForClient, options.allowHistoryForSubscriber, options.allowHistoryForAnonymous, caller)

export const hasHistory = ({ historySize, historyTtlMs }: HistoryOptions): boolean =>
  historySize > 0 && historyTtlMs > 0

/** `*` for any text and `?` for any character; everything else stands for itself. */
export const globTest = (pattern: string): ((name: string) => boolean) => {
  // Several stars in a row mean the same as one, and would be walked through for every name.
  const glob = pattern.replace(/\*+/g, '*')
  // Without a regular expression, which a pattern full of stars would keep busy for ever.
  return (name) => {
    let at = 0
    let from = 0
    let star = -1
    let mark = 0
    while (from < name.length) {
      if (at < glob.length && glob[at] !== '*' && (glob[at] === '?' || glob[at] === name[from])) {
        at++
        from++
      } else if (glob[at] === '*') {
        star = at++
        mark = from
      } else if (star !== -1) {
        at = star + 1
        from = ++mark
      } else return false
    }
    if (glob[at] === '*') at++
    return at === glob.length
  }
}
