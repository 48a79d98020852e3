import { isOriginPattern } from '../../shared/origin-pattern.js'
import type { ChannelRules, ClientOptions, CompressionOptions } from '../core/options.js'
import { type ReportError, reportIn } from './file.js'
import { durationMs, type RelayConfigFile } from './schema.js'
import { claimRules } from './token-options.js'

const SECOND_MS = 1000
const DEFAULT_MESSAGE_BYTES = 65_536

/** The client options of a configuration file, with defaults. */
export const clientOptions = (
  { client: file = {}, websocket = {} }: RelayConfigFile,
  namespaces: ChannelRules['namespaces'],
  report: ReportError
): ClientOptions => {
  const personal = file.subscribe_to_user_personal_channel ?? {}
  const token = claimRules(file.token ?? {}, reportIn('client.token', report))
  const separate = file.subscription_token ?? {}
  const options: ClientOptions = {
    insecure: file.insecure ?? false,
    allowAnonymousConnectWithoutToken: file.allow_anonymous_connect_without_token ?? false,
    disallowAnonymousConnectionTokens:
      file.disallow_anonymous_connection_tokens ?? !file.allow_anonymous_connect_without_token,
    token,
    subscriptionToken: separate.enabled ? claimRules(separate, reportIn('client.subscription_token', report)) : token,
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
    concurrency: file.concurrency ?? 0,
    positionCheckDelayMs: durationMs(file.channel_position_check_delay ?? '40s'),
    positionMaxTimeLagMs: durationMs(file.channel_position_max_time_lag ?? '0'),
    historyMaxPublicationLimit: file.history_max_publication_limit ?? 300,
    recoveryMaxPublicationLimit: file.recovery_max_publication_limit ?? 300,
    messageSizeLimit: websocket.message_size_limit ?? DEFAULT_MESSAGE_BYTES,
    compression: compressionOptions(websocket),
    userSubscribeToPersonal: personal.enabled ?? false,
    personalChannelNamespace: personal.personal_channel_namespace ?? '',
    includeConnectionTime: file.connect_include_server_time ?? false
  }
  checkTimes(options, report)
  checkOrigins(file.allowed_origins ?? [], report)
  const namespace = options.personalChannelNamespace
  if (namespace !== '' && !namespaces.has(namespace))
    report('client.subscribe_to_user_personal_channel.personal_channel_namespace', 'must be one of the namespaces')
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

const checkTimes = (options: ClientOptions, report: ReportError): void => {
  const { pingIntervalMs, pongTimeoutMs } = options
  // The connect reply contains the interval in seconds.
  if (pingIntervalMs === 0 || pingIntervalMs % SECOND_MS !== 0)
    report('client.ping_interval', 'must be whole seconds, at least one')
  else if (pongTimeoutMs >= pingIntervalMs) report('client.pong_timeout', 'must be shorter than client.ping_interval')
  if (pongTimeoutMs === 0) report('client.pong_timeout', 'must be longer than 0')
  if (options.staleCloseDelayMs === 0) report('client.stale_close_delay', 'must be longer than 0')
  if (options.positionCheckDelayMs === 0) report('client.channel_position_check_delay', 'must be longer than 0')
}

const checkOrigins = (origins: readonly string[], report: ReportError): void => {
  for (const [index, origin] of origins.entries()) {
    if (!isOriginPattern(origin))
      report(
        `client.allowed_origins[${index}]`,
        'must be an origin such as https://app.example.com or https://*.example.com, or *'
      )
  }
}
