import { isOriginPattern } from '../shared/origin-pattern.js'
import { channelOptions, DEFAULT_CHANNELS } from './channel-options.js'
import type { RelayConfigFile } from './config-schema.js'
import type { ChannelOptions, ChannelRules, ClientOptions } from './core/options.js'
import { durationMs } from './duration.js'

/** Is told the place in the file and what is wrong there. */
export type Complain = (place: string, what: string) => void

export type TokenSecrets = Pick<
  ClientOptions,
  'tokenHmacSecret' | 'tokenHmacSecretPrevious' | 'subscriptionTokenHmacSecret' | 'subscriptionTokenHmacSecretPrevious'
>

type FileSection<Name extends keyof RelayConfigFile> = NonNullable<RelayConfigFile[Name]>

const SECOND_MS = 1000

/** What the file says about connections, and what holds where it says nothing. */
export const clientOptions = (
  { client: file = {}, websocket = {} }: RelayConfigFile,
  secrets: TokenSecrets,
  namespaces: ChannelRules['namespaces'],
  complain: Complain
): ClientOptions => {
  const personal = file.subscribe_to_user_personal_channel ?? {}
  const options: ClientOptions = {
    ...secrets,
    insecure: file.insecure ?? false,
    allowAnonymousConnectWithoutToken: file.allow_anonymous_connect_without_token ?? false,
    tokenExpiryRequired: file.token?.expiry_required ?? true,
    tokenAudience: file.token?.audience ?? null,
    tokenIssuer: file.token?.issuer ?? null,
    pingIntervalMs: durationMs(file.ping_interval ?? '25s'),
    pongTimeoutMs: durationMs(file.pong_timeout ?? '8s'),
    staleCloseDelayMs: durationMs(file.stale_close_delay ?? '10s'),
    expiredCloseDelayMs: durationMs(file.expired_close_delay ?? '25s'),
    expiredSubCloseDelayMs: durationMs(file.expired_sub_close_delay ?? '25s'),
    queueMaxBytes: file.queue_max_size ?? 1024 * 1024,
    channelLimit: file.channel_limit ?? 128,
    userConnectionLimit: file.user_connection_limit ?? 0,
    connectionLimit: file.connection_limit ?? 0,
    connectionsPerAddress: file.connections_per_address ?? 0,
    connectionRateLimit: file.connection_rate_limit ?? 0,
    commandsPerSecond: file.commands_per_second ?? 0,
    positionCheckDelayMs: durationMs(file.channel_position_check_delay ?? '40s'),
    historyMaxPublicationLimit: file.history_max_publication_limit ?? 300,
    recoveryMaxPublicationLimit: file.recovery_max_publication_limit ?? 300,
    messageSizeLimit: websocket.message_size_limit ?? 65_536,
    userSubscribeToPersonal: personal.enabled ?? false,
    personalChannelNamespace: personal.personal_channel_namespace ?? '',
    includeConnectionTime: file.connect_include_server_time ?? false
  }
  timeFaults(options, complain)
  originFaults(file.allowed_origins ?? [], complain)
  const namespace = options.personalChannelNamespace
  if (namespace !== '' && !namespaces.has(namespace))
    complain('client.subscribe_to_user_personal_channel.personal_channel_namespace', 'must be one of the namespaces')
  return Object.freeze(options)
}

const timeFaults = (options: ClientOptions, complain: Complain): void => {
  const { pingIntervalMs, pongTimeoutMs } = options
  // Clients are told the interval in seconds.
  if (pingIntervalMs === 0 || pingIntervalMs % SECOND_MS !== 0)
    complain('client.ping_interval', 'must be whole seconds, at least one')
  else if (pongTimeoutMs >= pingIntervalMs) complain('client.pong_timeout', 'must be shorter than client.ping_interval')
  if (pongTimeoutMs === 0) complain('client.pong_timeout', 'must be longer than 0')
  if (options.staleCloseDelayMs === 0) complain('client.stale_close_delay', 'must be longer than 0')
  if (options.positionCheckDelayMs === 0) complain('client.channel_position_check_delay', 'must be longer than 0')
}

const originFaults = (origins: readonly string[], complain: Complain): void => {
  for (const [index, origin] of origins.entries()) {
    if (!isOriginPattern(origin))
      complain(
        `client.allowed_origins[${index}]`,
        'must be an origin such as https://app.example.com or https://*.example.com, or *'
      )
  }
}

/** What the file says about channels. A file has the whole say: without it, and only then, there are the default ones. */
export const channelRules = (file: RelayConfigFile | null, complain: Complain): ChannelRules => {
  if (file === null) return DEFAULT_CHANNELS
  const channel: FileSection<'channel'> = file.channel ?? {}
  const rules = {
    namespaceBoundary: channel.namespace_boundary ?? DEFAULT_CHANNELS.namespaceBoundary,
    userBoundary: channel.user_boundary ?? DEFAULT_CHANNELS.userBoundary,
    privatePrefix: channel.private_prefix ?? DEFAULT_CHANNELS.privatePrefix,
    maxLength: channel.max_length ?? DEFAULT_CHANNELS.maxLength
  }
  const signs = [rules.namespaceBoundary, rules.userBoundary, rules.privatePrefix]
  if (new Set(signs).size < signs.length)
    complain('channel', 'must have different signs as namespace_boundary, user_boundary and private_prefix')
  return Object.freeze({
    ...rules,
    withoutNamespace: channelOptions(
      channel.without_namespace ?? {},
      channel.history_meta_ttl,
      within('channel.without_namespace', complain)
    ),
    namespaces: namespacesOf(channel, rules.namespaceBoundary, complain)
  })
}

const namespacesOf = (
  { namespaces = [], history_meta_ttl }: FileSection<'channel'>,
  boundary: string,
  complain: Complain
): ReadonlyMap<string, ChannelOptions> => {
  const byName = new Map<string, ChannelOptions>()
  for (const [index, { name, ...options }] of namespaces.entries()) {
    const place = `channel.namespaces[${index}]`
    if (byName.has(name)) complain(`${place}.name`, 'is the name of another namespace too')
    if (name.includes(boundary)) complain(`${place}.name`, 'must not contain channel.namespace_boundary')
    byName.set(name, channelOptions(options, history_meta_ttl, within(place, complain)))
  }
  return byName
}

const within =
  (place: string, complain: Complain): Complain =>
  (option, what) =>
    complain(`${place}.${option}`, what)
