import type { ChannelRules, ClientOptions, CompressionOptions } from '../core/options.js'
import { type ReportError, reportIn } from './file.js'
import { isAllowedOriginEntry } from './origins.js'
import type { RelayConfigFile } from './schema.js'
import { commandLimitsOf, durationMs, durationOr } from './schema-kinds.js'
import { claimRules } from './token-options.js'

export const DEFAULT_MESSAGE_BYTES = 65_536

const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/

/** The client options of a configuration file, with defaults. */
export const clientOptions = (
  { client: file = {}, websocket = {}, sse, http_stream, emulation }: RelayConfigFile,
  { namespaces, withoutNamespace }: Pick<ChannelRules, 'namespaces' | 'withoutNamespace'>,
  report: ReportError
): ClientOptions => {
  const personal = file.subscribe_to_user_personal_channel ?? {}
  const token = claimRules(file.token ?? {}, reportIn('client.token', report))
  const messageSizeLimit = websocket.message_size_limit ?? DEFAULT_MESSAGE_BYTES
  const separate = file.subscription_token ?? {}
  const options: ClientOptions = {
    insecure: file.insecure ?? false,
    allowAnonymousConnectWithoutToken: file.allow_anonymous_connect_without_token ?? false,
    userIdHeader: file.user_id_http_header?.toLowerCase() ?? null,
    disallowAnonymousConnectionTokens:
      file.disallow_anonymous_connection_tokens ?? !file.allow_anonymous_connect_without_token,
    token,
    subscriptionToken: separate.enabled ? claimRules(separate, reportIn('client.subscription_token', report)) : token,
    pingIntervalMs: durationOr(file.ping_interval, '25s'),
    pongTimeoutMs: durationOr(file.pong_timeout, '8s'),
    staleCloseDelayMs: durationOr(file.stale_close_delay, '10s'),
    expiredCloseDelayMs: durationOr(file.expired_close_delay, '25s'),
    expiredSubCloseDelayMs: durationOr(file.expired_sub_close_delay, '25s'),
    queueMaxBytes: file.queue_max_size ?? 1024 * 1024,
    channelLimit: file.channel_limit ?? 128,
    userConnectionLimit: file.user_connection_limit ?? 0,
    connectionLimit: file.connection_limit ?? 0,
    connectionsPerAddress: file.connections_per_address ?? 0,
    connectionRateLimit: file.connection_rate_limit ?? 0,
    commandsPerSecond: file.commands_per_second ?? 0,
    concurrency: file.concurrency ?? 0,
    positionCheckDelayMs: durationOr(file.channel_position_check_delay, '40s'),
    positionMaxTimeLagMs: durationMs(file.channel_position_max_time_lag ?? '0'),
    historyMaxPublicationLimit: file.history_max_publication_limit ?? 300,
    recoveryMaxPublicationLimit: file.recovery_max_publication_limit ?? 300,
    messageSizeLimit,
    sseBodyBytes: sse?.max_request_body_size ?? messageSizeLimit,
    httpStreamBodyBytes: http_stream?.max_request_body_size ?? messageSizeLimit,
    emulationBodyBytes: emulation?.max_request_body_size ?? DEFAULT_MESSAGE_BYTES,
    compression: compressionOptions(websocket),
    userSubscribeToPersonal: personal.enabled ?? false,
    personalChannelNamespace: personal.personal_channel_namespace ?? '',
    singleConnection: (personal.enabled && personal.single_connection) ?? false,
    includeConnectionTime: file.connect_include_server_time ?? false,
    connectProxy: file.proxy?.connect?.enabled ?? false,
    refreshProxy: file.proxy?.refresh?.enabled ?? false,
    commandLimits: commandLimitsOf(file.command_limits),
    tokenInvalidation: file.user_tokens_invalidate?.enabled
      ? { ttlMs: durationOr(file.user_tokens_invalidate.ttl, '720h') }
      : null
  }
  if (options.pongTimeoutMs >= options.pingIntervalMs)
    report('client.pong_timeout', 'must be shorter than client.ping_interval')
  if (options.userIdHeader !== null && !HEADER_NAME.test(options.userIdHeader))
    report('client.user_id_http_header', 'must be the name of a header')
  checkOrigins(file.allowed_origins ?? [], report)
  const name = options.personalChannelNamespace
  const namespace = name === '' ? withoutNamespace : namespaces.get(name)
  const reportPersonal = reportIn('client.subscribe_to_user_personal_channel', report)
  if (options.userSubscribeToPersonal && namespace === undefined)
    reportPersonal('personal_channel_namespace', 'must be one of the namespaces')
  if (options.userSubscribeToPersonal && namespace !== undefined && namespace.map !== null)
    reportPersonal('personal_channel_namespace', 'must not be a namespace of maps')
  if (options.singleConnection && namespace?.presence === false)
    reportPersonal('single_connection', 'requires presence in the namespace of personal channels')
  return Object.freeze(options)
}

/** The compression of a WebSocket transport; null if it is off. */
export const compressionOptions = (file: NonNullable<RelayConfigFile['websocket']>): CompressionOptions | null =>
  file.compression
    ? Object.freeze({
        minBytes: file.compression_min_size ?? 0,
        level: file.compression_level ?? 1,
        maxDecompressedBytes: file.decompressed_message_size_limit || (file.message_size_limit ?? DEFAULT_MESSAGE_BYTES)
      })
    : null

const checkOrigins = (origins: readonly string[], report: ReportError): void => {
  for (const [index, origin] of origins.entries()) {
    if (!isAllowedOriginEntry(origin))
      report(
        `client.allowed_origins[${index}]`,
        'must be an origin such as https://app.example.com, a glob such as https://*.example.com:*, or *'
      )
  }
}
