import { resolveChannel } from '../core/channel-names.js'
import { ReplyError } from '../core/codes.js'
import { parseConflatePath, parseEntryTimePath } from '../core/merging/keyed-list.js'
import type { ChannelOptions, ChannelRules, ChannelState, SubscriptionType } from '../core/options.js'
import type { FileChannelOptions } from './channel-schema.js'
import { type ReportError, reportIn } from './file.js'
import { checkPresencePrefixes, mapOptions, viewOptions } from './map-options.js'
import { parsePattern } from './pattern.js'
import { proxyName } from './proxy-selection.js'
import type { RelayConfigFile } from './schema.js'
import { commandLimitsOf, durationMs } from './schema-kinds.js'

const SECOND_MS = 1000
const HISTORY_META_TTL_MS = 720 * 3600 * SECOND_MS

const ALL_STATES: readonly ChannelState[] = ['occupied', 'vacated']

type ChannelSection = NonNullable<RelayConfigFile['channel']>

/** The channel rules of a configuration file, which replaces the default namespaces completely. */
export const channelRules = (file: RelayConfigFile | null, report: ReportError): ChannelRules => {
  if (file === null) return DEFAULT_CHANNELS
  const channel: ChannelSection = file.channel ?? {}
  const rules = {
    namespaceBoundary: channel.namespace_boundary ?? DEFAULT_CHANNELS.namespaceBoundary,
    userBoundary: channel.user_boundary ?? DEFAULT_CHANNELS.userBoundary,
    userSeparator: channel.user_separator ?? DEFAULT_CHANNELS.userSeparator,
    privatePrefix: channel.private_prefix ?? DEFAULT_CHANNELS.privatePrefix,
    maxLength: channel.max_length ?? DEFAULT_CHANNELS.maxLength
  }
  const boundaries = [rules.namespaceBoundary, rules.userBoundary, rules.userSeparator, rules.privatePrefix]
  if (new Set(boundaries).size < boundaries.length)
    report(
      'channel',
      'must have different characters as namespace_boundary, user_boundary, user_separator and private_prefix'
    )
  const complete: ChannelRules = Object.freeze({
    ...rules,
    withoutNamespace: channelOptions(
      channel.without_namespace ?? {},
      channel,
      reportIn('channel.without_namespace', report)
    ),
    namespaces: namespaceOptions(channel, rules.namespaceBoundary, report)
  })
  checkPresenceMaps(complete, channel, report)
  return complete
}

/** After all namespaces were read, because a prefix names another one. */
const checkPresenceMaps = (rules: ChannelRules, channel: ChannelSection, report: ReportError): void => {
  const typeOf = (name: string): SubscriptionType | null => {
    const resolved = resolveChannel(name, rules)
    return resolved instanceof ReplyError ? null : resolved.options.subscriptionType
  }
  checkPresencePrefixes(rules.withoutNamespace, typeOf, reportIn('channel.without_namespace', report))
  for (const [index, { name }] of (channel.namespaces ?? []).entries()) {
    const options = rules.namespaces.get(name)
    if (options !== undefined) checkPresencePrefixes(options, typeOf, reportIn(`channel.namespaces[${index}]`, report))
  }
}

const namespaceOptions = (
  channel: ChannelSection,
  boundary: string,
  report: ReportError
): ReadonlyMap<string, ChannelOptions> => {
  const byName = new Map<string, ChannelOptions>()
  for (const [index, { name, ...options }] of (channel.namespaces ?? []).entries()) {
    const path = `channel.namespaces[${index}]`
    if (byName.has(name)) report(`${path}.name`, 'is the name of another namespace too')
    if (name.includes(boundary)) report(`${path}.name`, 'must not contain channel.namespace_boundary')
    byName.set(name, channelOptions(options, channel, reportIn(path, report)))
  }
  return byName
}

const channelOptions = (
  file: FileChannelOptions,
  defaults: Pick<ChannelSection, 'history_meta_ttl' | 'publication_data_format'>,
  report: ReportError
): ChannelOptions => {
  // As in Centrifugo, 0 is the default.
  const metaTtlMs = durationMs(file.history_meta_ttl ?? '0') || durationMs(defaults.history_meta_ttl ?? '0')
  const options: ChannelOptions = {
    commandLimits: commandLimitsOf(file.command_limits),
    presence: file.presence ?? false,
    joinLeave: file.join_leave ?? false,
    forcePushJoinLeave: file.force_push_join_leave ?? false,
    historySize: file.history_size ?? 0,
    historyTtlMs: durationMs(file.history_ttl ?? '0'),
    historyMetaTtlMs: metaTtlMs || HISTORY_META_TTL_MS,
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
    allowTagsFilter: file.allow_tags_filter ?? false,
    allowUserLimitedChannels: file.allow_user_limited_channels ?? false,
    channelRegex: parsePattern('channel_regex', file.channel_regex, report),
    publicationDataFormat: file.publication_data_format ?? defaults.publication_data_format ?? 'any',
    conflate: file.conflate ?? null,
    entryTime: file.entry_time ?? null,
    snapshot: file.snapshot ?? false,
    allowMaxRate: file.allow_max_rate ?? false,
    view: viewOptions(file, report),
    subscriptionType: file.subscription_type ?? 'stream',
    map: mapOptions(file, report),
    mapClientsPresencePrefix: file.map_clients_presence_channel_prefix ?? null,
    mapUsersPresencePrefix: file.map_users_presence_channel_prefix ?? null,
    schema: file.schema ?? null,
    subscribeProxy: proxyName(file.subscribe_proxy_enabled, file.subscribe_proxy_name),
    publishProxy: proxyName(file.publish_proxy_enabled, file.publish_proxy_name),
    subRefreshProxy: proxyName(file.sub_refresh_proxy_enabled, file.sub_refresh_proxy_name),
    stateProxy: proxyName(file.state_proxy_enabled, file.state_proxy_name),
    stateEvents: Object.freeze(file.state_events?.length ? [...file.state_events] : [...ALL_STATES])
  }
  checkHistory(options, report)
  if (options.stateProxy !== null && !options.presence) report('state_proxy_enabled', 'needs presence')
  if (options.autoCacheRecover && !(options.forceRecovery && options.recoveryMode === 'cache'))
    report('auto_cache_recover', 'needs force_recovery and the force_recovery_mode "cache"')
  checkConflation(options, report)
  if (options.publicationDataFormat === 'binary') {
    if (options.conflate !== null) report('conflate', 'needs JSON data, not the publication_data_format "binary"')
    if (options.schema !== null) report('schema', 'needs JSON data, not the publication_data_format "binary"')
  }
  return Object.freeze(options)
}

const checkHistory = (options: ChannelOptions, report: ReportError): void => {
  const { historySize, historyTtlMs, historyMetaTtlMs } = options
  if (historyTtlMs % SECOND_MS !== 0) report('history_ttl', 'must be whole seconds')
  else if (historySize > 0 && historyTtlMs === 0) report('history_ttl', 'is needed together with history_size')
  if (historyTtlMs > 0 && historySize === 0) report('history_size', 'is needed together with history_ttl')
  if (historyMetaTtlMs < historyTtlMs) report('history_meta_ttl', 'must not be shorter than history_ttl')
  if (options.forceRecovery && !(historySize > 0 && historyTtlMs > 0))
    report('force_recovery', 'needs history_size and history_ttl')
}

const checkConflation = (options: ChannelOptions, report: ReportError): void => {
  const { conflate, entryTime, snapshot, allowMaxRate, historySize, historyTtlMs } = options
  if (conflate !== null && parseConflatePath(conflate) === null)
    report('conflate', 'must name a list and the key of its entries, such as "data[].transmitterId"')
  if (allowMaxRate && conflate === null) report('allow_max_rate', 'needs conflate')
  if (snapshot && conflate === null) report('snapshot', 'needs conflate')
  if (snapshot && !(historySize > 0 && historyTtlMs > 0)) report('snapshot', 'needs history_size and history_ttl')
  if (entryTime === null) return
  if (conflate === null) report('entry_time', 'needs conflate')
  if (parseEntryTimePath(entryTime) === null)
    report('entry_time', 'must name a field of an entry, such as "timestamp" or "position.time"')
}

const builtIn = (file: FileChannelOptions): ChannelOptions =>
  channelOptions(file, {}, (option, problem) => {
    throw new TypeError(`${option} ${problem}`)
  })

/** Clients may only subscribe. Publications that are missed during a short disconnect are recovered. */
const SUBSCRIBE_ONLY: FileChannelOptions = {
  allow_subscribe_for_client: true,
  publication_data_format: 'json',
  history_size: 100,
  history_ttl: '60s',
  force_recovery: true,
  force_positioning: true
}

/** The channels of a relay without a configuration file. */
const DEFAULT_CHANNELS: ChannelRules = Object.freeze({
  // Clients may do nothing.
  withoutNamespace: builtIn({}),
  namespaces: new Map([
    [
      'floor',
      builtIn({ ...SUBSCRIBE_ONLY, conflate: 'data[].transmitterId', entry_time: 'timestamp', snapshot: true })
    ],
    ['global', builtIn(SUBSCRIBE_ONLY)]
  ]),
  namespaceBoundary: ':',
  userBoundary: '#',
  userSeparator: ',',
  privatePrefix: '$',
  maxLength: 255
})
