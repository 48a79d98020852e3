import { parseConflatePath } from '../core/conflation.js'
import type { ChannelOptions, ChannelRules } from '../core/options.js'
import type { FileChannelOptions } from './schema.js'
import { durationMs } from './schema.js'

const SECOND_MS = 1000
const HISTORY_META_TTL_MS = 720 * 3600 * SECOND_MS

/** Nothing is open. */
export const CLOSED: ChannelOptions = Object.freeze({
  presence: false,
  joinLeave: false,
  forcePushJoinLeave: false,
  historySize: 0,
  historyTtlMs: 0,
  historyMetaTtlMs: HISTORY_META_TTL_MS,
  forceRecovery: false,
  recoveryMode: 'stream',
  autoCacheRecover: false,
  forcePositioning: false,
  allowRecovery: false,
  allowPositioning: false,
  allowSubscribeForClient: false,
  allowSubscribeForAnonymous: false,
  allowPublishForClient: false,
  allowPublishForSubscriber: false,
  allowPublishForAnonymous: false,
  allowPresenceForClient: false,
  allowPresenceForSubscriber: false,
  allowPresenceForAnonymous: false,
  allowHistoryForClient: false,
  allowHistoryForSubscriber: false,
  allowHistoryForAnonymous: false,
  allowedDeltaTypes: [],
  deltaPublish: false,
  allowUserLimitedChannels: false,
  channelRegex: null,
  conflate: null,
  schema: null
})

/** Clients only listen; who blinked misses nothing. */
const LISTENERS: ChannelOptions = Object.freeze({
  ...CLOSED,
  allowSubscribeForClient: true,
  historySize: 100,
  historyTtlMs: 60 * SECOND_MS,
  forceRecovery: true,
  forcePositioning: true
})

/** What holds without a file. */
export const DEFAULT_CHANNELS: ChannelRules = Object.freeze({
  withoutNamespace: CLOSED,
  namespaces: new Map([
    ['floor', Object.freeze({ ...LISTENERS, conflate: 'data[].transmitterId' })],
    ['global', LISTENERS]
  ]),
  namespaceBoundary: ':',
  userBoundary: '#',
  privatePrefix: '$',
  maxLength: 255
})

/** What one namespace of the file means; `complain` is told the option and what is wrong with it. */
export const channelOptions = (
  file: FileChannelOptions,
  defaultMetaTtl: string | undefined,
  complain: (option: string, what: string) => void
): ChannelOptions => {
  const metaTtl = file.history_meta_ttl ?? defaultMetaTtl
  const options: ChannelOptions = {
    presence: file.presence ?? false,
    joinLeave: file.join_leave ?? false,
    forcePushJoinLeave: file.force_push_join_leave ?? false,
    historySize: file.history_size ?? 0,
    historyTtlMs: durationMs(file.history_ttl ?? '0'),
    historyMetaTtlMs: metaTtl === undefined ? HISTORY_META_TTL_MS : durationMs(metaTtl),
    forceRecovery: file.force_recovery ?? false,
    recoveryMode: file.force_recovery_mode ?? 'stream',
    autoCacheRecover: file.auto_cache_recover ?? false,
    forcePositioning: file.force_positioning ?? false,
    allowRecovery: file.allow_recovery ?? false,
    allowPositioning: file.allow_positioning ?? false,
    allowSubscribeForClient: file.allow_subscribe_for_client ?? false,
    allowSubscribeForAnonymous: file.allow_subscribe_for_anonymous ?? false,
    allowPublishForClient: file.allow_publish_for_client ?? false,
    allowPublishForSubscriber: file.allow_publish_for_subscriber ?? false,
    allowPublishForAnonymous: file.allow_publish_for_anonymous ?? false,
    allowPresenceForClient: file.allow_presence_for_client ?? false,
    allowPresenceForSubscriber: file.allow_presence_for_subscriber ?? false,
    allowPresenceForAnonymous: file.allow_presence_for_anonymous ?? false,
    allowHistoryForClient: file.allow_history_for_client ?? false,
    allowHistoryForSubscriber: file.allow_history_for_subscriber ?? false,
    allowHistoryForAnonymous: file.allow_history_for_anonymous ?? false,
    allowedDeltaTypes: Object.freeze([...(file.allowed_delta_types ?? [])]),
    deltaPublish: file.delta_publish ?? false,
    allowUserLimitedChannels: file.allow_user_limited_channels ?? false,
    channelRegex: regexOf(file.channel_regex, complain),
    conflate: file.conflate ?? null,
    schema: file.schema ?? null
  }
  historyFaults(options, complain)
  if (options.autoCacheRecover && !(options.forceRecovery && options.recoveryMode === 'cache'))
    complain('auto_cache_recover', 'needs force_recovery and the force_recovery_mode "cache"')
  if (options.conflate !== null && parseConflatePath(options.conflate) === null)
    complain('conflate', 'must name a list and the key of its entries, such as "data[].transmitterId"')
  return Object.freeze(options)
}

const historyFaults = (options: ChannelOptions, complain: (option: string, what: string) => void): void => {
  const { historySize, historyTtlMs, historyMetaTtlMs } = options
  if (historyTtlMs % SECOND_MS !== 0) complain('history_ttl', 'must be whole seconds')
  else if (historySize > 0 && historyTtlMs === 0) complain('history_ttl', 'is needed together with history_size')
  if (historyTtlMs > 0 && historySize === 0) complain('history_size', 'is needed together with history_ttl')
  if (historyMetaTtlMs < historyTtlMs) complain('history_meta_ttl', 'must not be shorter than history_ttl')
  if (historySize > 0 && historyTtlMs > 0) return
  if (options.forceRecovery) complain('force_recovery', 'needs history_size and history_ttl')
  if (options.allowRecovery) complain('allow_recovery', 'needs history_size and history_ttl')
}

const regexOf = (text: string | undefined, complain: (option: string, what: string) => void): RegExp | null => {
  if (text === undefined) return null
  try {
    return new RegExp(text, 'u')
  } catch {
    complain('channel_regex', 'must be a regular expression')
    return null
  }
}
