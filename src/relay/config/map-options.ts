import type { TSchema } from '@sinclair/typebox'
import { parseEntryTimePath } from '../core/merging/keyed-list.js'
import type { ChannelOptions, MapMode, MapOptions, SubscriptionType, ViewOptions } from '../core/options.js'
import type { FileChannelOptions } from './channel-schema.js'
import { type ReportError, reportIn } from './file.js'
import { mapOptionSchemas } from './map-schema.js'
import { proxyName } from './proxy-selection.js'
import { durationMs, durationOr } from './schema-kinds.js'

type FileMapOptions = NonNullable<FileChannelOptions['map']>

const MAP_SCHEMAS: Readonly<Record<string, TSchema>> = mapOptionSchemas.map.properties

/** Options of streams that a map does not have. */
const STREAM_OPTIONS = [
  'history_size',
  'history_ttl',
  'history_meta_ttl',
  'force_recovery',
  'allow_recovery',
  'force_recovery_mode',
  'auto_cache_recover',
  'force_positioning',
  'allow_positioning',
  'conflate',
  'entry_time',
  'snapshot',
  'allow_max_rate',
  'publish_proxy_enabled'
] as const satisfies readonly (keyof FileChannelOptions)[]

/** As in Centrifugo, the duration 0 stands for the default. */
const isSet = (value: unknown): boolean => Boolean(value) && !(typeof value === 'string' && /^0[a-z]*$/.test(value))

/** The options of a namespace for maps; null for a stream. */
export const mapOptions = (file: FileChannelOptions, report: ReportError): MapOptions | null => {
  const type = file.subscription_type ?? 'stream'
  const { mode } = file.map ?? {}
  if (type === 'stream') {
    const isChanged = ([name, value]: readonly [string, unknown]): boolean =>
      isSet(value) && value !== MAP_SCHEMAS[name]?.default
    if (Object.entries(file.map ?? {}).some(isChanged))
      report('map', 'needs the subscription_type "map", "map_clients" or "map_users"')
    return null
  }
  for (const option of STREAM_OPTIONS) if (isSet(file[option])) report(option, 'is not an option of a map')
  const inMap = reportIn('map', report)
  if (mode === undefined) {
    inMap('mode', 'is missing')
    return null
  }
  if (type !== 'map' && mode === 'persistent') inMap('mode', `must not be "persistent" with "${type}"`)
  const deliversPrevious =
    file.allow_tags_filter === true || file.view_x !== undefined || (file.allowed_delta_types ?? []).length > 0
  const options = { ...parsedOptions(file.map ?? {}, mode, inMap), deliversPrevious }
  checkPageSizes(options, inMap)
  for (const name of ['publish_proxy_enabled', 'remove_proxy_enabled'] as const)
    if (file.map?.[name] && options.clientKey !== null) inMap(name, 'must not be combined with client_key')
  return Object.freeze(options)
}

const parsedOptions = (
  file: FileMapOptions,
  mode: MapMode,
  report: ReportError
): Omit<MapOptions, 'deliversPrevious'> => {
  const maxPageSize = file.max_page_size ?? 1000
  return {
    ...storageOptions(file, mode, report),
    maxKeys: file.max_keys ?? 100_000,
    defaultPageSize: file.default_page_size ?? 100,
    minPageSize: file.min_page_size ?? 100,
    maxPageSize,
    liveLimit: file.live_transition_max_publication_limit ?? maxPageSize,
    catchUpTimeoutMs: catchUpTimeoutMs(file.subscribe_catch_up_timeout),
    clientKey: file.client_key ?? null,
    removeClientOnUnsubscribe: file.remove_client_on_unsubscribe ?? false,
    allowPublishForClient: file.allow_publish_for_client ?? false,
    allowPublishForSubscriber: file.allow_publish_for_subscriber ?? false,
    allowPublishForAnonymous: file.allow_publish_for_anonymous ?? false,
    allowRemoveForClient: file.allow_remove_for_client ?? false,
    allowRemoveForSubscriber: file.allow_remove_for_subscriber ?? false,
    allowRemoveForAnonymous: file.allow_remove_for_anonymous ?? false,
    publishProxy: proxyName(file.publish_proxy_enabled, file.publish_proxy_name),
    removeProxy: proxyName(file.remove_proxy_enabled, file.remove_proxy_name)
  }
}

const storageOptions = (
  file: FileMapOptions,
  mode: MapMode,
  report: ReportError
): Pick<MapOptions, 'mode' | 'keyTtlMs' | 'streamSize' | 'streamTtlMs' | 'metaTtlMs'> => {
  const keyTtlMs = durationMs(file.key_ttl ?? '0')
  if (mode === 'persistent' && keyTtlMs > 0) report('key_ttl', 'must not be set with the mode "persistent"')
  if (mode !== 'persistent' && keyTtlMs === 0) report('key_ttl', `is needed with the mode "${mode}"`)
  const hasStream = mode !== 'ephemeral'
  for (const option of ['stream_size', 'stream_ttl'] as const)
    if (!hasStream && file[option] !== undefined) report(option, 'must not be set with the mode "ephemeral"')
  const streamTtlMs = hasStream ? durationOr(file.stream_ttl, '1m') : 0
  const metaTtlMs = durationMs(file.meta_ttl ?? '0')
  if (mode === 'persistent' && metaTtlMs > 0) report('meta_ttl', 'must not be set with the mode "persistent"')
  else if (metaTtlMs > 0 && metaTtlMs < Math.max(streamTtlMs, keyTtlMs))
    report('meta_ttl', 'must not be shorter than key_ttl and stream_ttl')
  return {
    mode,
    keyTtlMs,
    streamSize: hasStream ? (file.stream_size ?? 100) : 0,
    streamTtlMs,
    metaTtlMs: mode === 'persistent' ? 0 : metaTtlMs || Math.max(10 * streamTtlMs, keyTtlMs)
  }
}

/** As in Centrifugo, 0 is the default and a negative value no limit. */
const catchUpTimeoutMs = (text: string | undefined): number =>
  text?.startsWith('-') ? Number.POSITIVE_INFINITY : durationOr(text, '5s')

const checkPageSizes = ({ minPageSize, defaultPageSize, maxPageSize }: MapOptions, report: ReportError): void => {
  if (minPageSize > defaultPageSize) report('min_page_size', 'must not be above default_page_size')
  if (defaultPageSize > maxPageSize) report('max_page_size', 'must not be below default_page_size')
}

/** Null without views. */
export const viewOptions = (file: FileChannelOptions, report: ReportError): ViewOptions | null => {
  const { view_x, view_y, view_cell } = file
  if (view_x === undefined && view_y === undefined && view_cell === undefined) return null
  if (!file.snapshot && (file.subscription_type ?? 'stream') !== 'map')
    report('view_x', 'needs snapshot or the subscription_type "map"')
  if (file.join_leave) report('join_leave', 'must not be combined with view_x')
  const x = coordinatePath('view_x', view_x, report)
  const y = coordinatePath('view_y', view_y, report)
  if (view_cell === undefined) report('view_cell', 'is needed together with view_x and view_y')
  return x === null || y === null || view_cell === undefined ? null : Object.freeze({ x, y, cell: view_cell })
}

const coordinatePath = (
  option: 'view_x' | 'view_y',
  text: string | undefined,
  report: ReportError
): readonly string[] | null => {
  const path = text === undefined ? null : parseEntryTimePath(text)
  if (text === undefined) report(option, 'is needed together with the other options of views')
  else if (path === null) report(option, 'must name a field, such as "x" or "position.x"')
  return path
}

/** A prefix must lead to a map namespace of its type. */
export const checkPresencePrefixes = (
  options: ChannelOptions,
  typeOf: (channel: string) => SubscriptionType | null,
  report: ReportError
): void => {
  const check = (option: string, prefix: string | null, type: SubscriptionType): void => {
    if (prefix !== null && typeOf(prefix) !== type)
      report(option, `must begin with a namespace of the subscription_type "${type}"`)
  }
  check('map_clients_presence_channel_prefix', options.mapClientsPresencePrefix, 'map_clients')
  check('map_users_presence_channel_prefix', options.mapUsersPresencePrefix, 'map_users')
}
