import { randomBytes } from 'node:crypto'
import { type Environment, isGiven, readSettings, SettingsFault, type SettingValues } from '../../shared/env.js'
import { isOriginPattern } from '../../shared/origin-pattern.js'
import { areRedisUrls, isRedisPrefix, REDIS_PREFIX_RULE, REDIS_URLS_RULE } from '../../shared/redis-urls.js'
import type { ChannelOptions, ChannelRules, ClientOptions } from '../core/options.js'
import { channelOptions, DEFAULT_CHANNELS } from './channel-options.js'
import { FILE_FAULT, type ReadFile, readConfigFile } from './file.js'
import { durationMs, type RelayConfigFile } from './schema.js'
import { relaySettings } from './settings.js'

/** Is told the place in the file and what is wrong there. */
export type ReportError = (place: string, what: string) => void

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
  complain: ReportError
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

const timeFaults = (options: ClientOptions, complain: ReportError): void => {
  const { pingIntervalMs, pongTimeoutMs } = options
  // Clients are told the interval in seconds.
  if (pingIntervalMs === 0 || pingIntervalMs % SECOND_MS !== 0)
    complain('client.ping_interval', 'must be whole seconds, at least one')
  else if (pongTimeoutMs >= pingIntervalMs) complain('client.pong_timeout', 'must be shorter than client.ping_interval')
  if (pongTimeoutMs === 0) complain('client.pong_timeout', 'must be longer than 0')
  if (options.staleCloseDelayMs === 0) complain('client.stale_close_delay', 'must be longer than 0')
  if (options.positionCheckDelayMs === 0) complain('client.channel_position_check_delay', 'must be longer than 0')
}

const originFaults = (origins: readonly string[], complain: ReportError): void => {
  for (const [index, origin] of origins.entries()) {
    if (!isOriginPattern(origin))
      complain(
        `client.allowed_origins[${index}]`,
        'must be an origin such as https://app.example.com or https://*.example.com, or *'
      )
  }
}

/** What the file says about channels. A file has the whole say: without it, and only then, there are the default ones. */
export const channelRules = (file: RelayConfigFile | null, complain: ReportError): ChannelRules => {
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
  complain: ReportError
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
  (place: string, complain: ReportError): ReportError =>
  (option, what) =>
    complain(`${place}.${option}`, what)

/** Where a secret may come from, in the order in which it is looked for. */
export interface SecretSource {
  /** As messages name it. */
  readonly name: string
  readonly text: string | null | undefined
}

export interface SecretRule {
  readonly production: boolean
  /** Whether nobody is asked for it anyway. */
  readonly optional: boolean
  /** Whether a source was malformed, which was told already. */
  readonly faulty: boolean
}

const STRONG = /^[0-9a-f]{64}$/i

/** What "0000…" and "abab…" have in common. */
const DISTINCT_CHARACTERS = 4

const RANDOM_BYTES = 32

/** The first one there is. Where none is needed it is one that nobody knows, so that no empty one is ever compared. */
export const chooseSecret = (sources: readonly SecretSource[], rule: SecretRule, faults: string[]): string => {
  const chosen = sources.find(({ text }) => typeof text === 'string')
  if (typeof chosen?.text !== 'string') {
    if (!rule.optional && !rule.faulty) faults.push(`${sources[0]?.name} is required`)
    return randomBytes(RANDOM_BYTES).toString('hex')
  }
  if (rule.production) faults.push(...weaknesses(chosen.name, chosen.text))
  return chosen.text
}

/** Why a secret is not good enough for production. */
export const weaknesses = (name: string, secret: string): readonly string[] => {
  if (!STRONG.test(secret)) return [`${name} must be 64 hex characters in production`]
  if (new Set(secret).size >= DISTINCT_CHARACTERS) return []
  return [`${name} is too easy to guess: use at least ${DISTINCT_CHARACTERS} different characters`]
}

type Values = SettingValues<typeof relaySettings>

export interface RelayConfig {
  readonly listen: { readonly host: string; readonly port: number }
  /** Lower case. */
  readonly allowedOrigins: readonly string[]
  readonly client: ClientOptions
  readonly channels: ChannelRules
  readonly api: {
    readonly key: string
    /** Being replaced, and still accepted. */
    readonly previousKey: string | null
    readonly maxBodyBytes: number
    readonly insecure: boolean
    readonly errorMode: 'default' | 'transport'
  }
  readonly trustedProxies: readonly string[]
  readonly metricsAllow: readonly string[]
  /** Without one there is no admin page. */
  readonly adminPassword: string | null
  readonly engine: 'memory' | 'redis'
  /** There whenever the engine is redis. */
  readonly redisUrl: string | null
  /** What everything of ours in Redis begins with. */
  readonly redisPrefix: string
  /** How long a client of a relay that died is still listed. */
  readonly presenceTtlMs: number
  readonly workers: number
  readonly logLevel: Values['LOG_LEVEL']
  readonly shutdownMs: number
}

/** Reads the environment and the file that it names. Throws `SettingsFault` with every fault there is. */
export const relayConfig = (environment: Environment, readFile: ReadFile): RelayConfig => {
  const faults: string[] = []
  const values = readSettings(relaySettings, environment, faults)
  const file = values.RELAY_CONFIG === null ? null : readConfigFile(values.RELAY_CONFIG, readFile, faults)
  // What a file means can only be said of one that can be read.
  if (values.RELAY_CONFIG !== null && file === null) throw new SettingsFault(faults)
  const config = new ConfigReading(environment, values, file, faults).config()
  if (faults.length > 0) throw new SettingsFault(faults)
  return config
}

const DEFAULT_SHUTDOWN = '5s'
const DEFAULT_PRESENCE_TTL = '60s'

const MIN_PRESENCE_TTL_MS = 1000

const MIN_PASSWORD_LENGTH = 12

const DEFAULT_BODY_BYTES = 1024 * 1024

/** One reading of both sources: the environment where it says something, else the file, else the default. */
class ConfigReading {
  readonly #environment: Environment
  readonly #values: Values
  readonly #file: RelayConfigFile | null
  readonly #faults: string[]
  readonly #production: boolean

  constructor(environment: Environment, values: Values, file: RelayConfigFile | null, faults: string[]) {
    this.#environment = environment
    this.#values = values
    this.#file = file
    this.#faults = faults
    this.#production = values.NODE_ENV === 'production'
  }

  config(): RelayConfig {
    const file = this.#file ?? {}
    const channels = channelRules(this.#file, this.#complain)
    const client = clientOptions(file, this.#tokenSecrets(file), channels.namespaces, this.#complain)
    const { TRUST_PROXY, METRICS_ALLOW, RELAY_WORKERS } = this.#values
    if (TRUST_PROXY.some((range) => range.endsWith('/0'))) this.#faults.push('TRUST_PROXY must not trust every address')
    if (this.#production) this.#refuseInsecure(file)
    return Object.freeze({
      listen: Object.freeze({
        host: this.#choose('RELAY_HOST', file.http_server?.address),
        port: this.#choose('RELAY_PORT', file.http_server?.port)
      }),
      allowedOrigins: Object.freeze(
        this.#choose('RELAY_ALLOWED_ORIGINS', file.client?.allowed_origins).map((origin) => origin.toLowerCase())
      ),
      client,
      channels,
      api: Object.freeze({
        key: this.#secret('REALTIME_API_KEY', 'http_api.key', file.http_api?.key, file.http_api?.insecure),
        previousKey: this.#previousSecret('REALTIME_API_KEY_PREVIOUS'),
        maxBodyBytes: file.http_api?.max_body_size ?? DEFAULT_BODY_BYTES,
        insecure: file.http_api?.insecure ?? false,
        errorMode: file.http_api?.error_mode ?? 'default'
      }),
      trustedProxies: Object.freeze(TRUST_PROXY),
      metricsAllow: Object.freeze(['loopback', ...METRICS_ALLOW]),
      adminPassword: this.#adminPassword(file),
      ...this.#engine(file),
      workers: RELAY_WORKERS,
      logLevel: this.#choose('LOG_LEVEL', file.log?.level),
      shutdownMs: durationMs(file.shutdown?.timeout ?? DEFAULT_SHUTDOWN)
    })
  }

  readonly #complain: ReportError = (place, what) => {
    this.#faults.push(`${FILE_FAULT} ${place} ${what}`)
  }

  #choose<Name extends keyof Values>(name: Name, fromFile: Values[Name] | undefined): Values[Name] {
    return isGiven(name, this.#environment) ? this.#values[name] : (fromFile ?? this.#values[name])
  }

  /** One fault per variable is enough: a malformed one is not also missing. */
  #isTold(name: string): boolean {
    return this.#faults.some((fault) => fault.startsWith(`${name} `) || fault.startsWith(`${name}_FILE `))
  }

  #tokenSecrets({ client = {} }: RelayConfigFile): TokenSecrets {
    const place = 'client.subscription_token.hmac_secret_key'
    const { enabled = false, hmac_secret_key: other } = client.subscription_token ?? {}
    const key = client.token?.hmac_secret_key
    const tokenHmacSecret = this.#secret('REALTIME_HMAC_SECRET', 'client.token.hmac_secret_key', key, client.insecure)
    const tokenHmacSecretPrevious = this.#previousSecret('REALTIME_HMAC_SECRET_PREVIOUS')
    const ofConnections = { tokenHmacSecret, tokenHmacSecretPrevious }
    if (!enabled) {
      return {
        ...ofConnections,
        subscriptionTokenHmacSecret: tokenHmacSecret,
        subscriptionTokenHmacSecretPrevious: tokenHmacSecretPrevious
      }
    }
    const source = { name: `${FILE_FAULT} ${place}`, text: other }
    const subscriptionTokenHmacSecret = this.#chooseSecret([source], client.insecure, false)
    return { ...ofConnections, subscriptionTokenHmacSecret, subscriptionTokenHmacSecretPrevious: null }
  }

  #previousSecret(name: 'REALTIME_HMAC_SECRET_PREVIOUS' | 'REALTIME_API_KEY_PREVIOUS'): string | null {
    const previous = this.#values[name]
    if (this.#production && previous !== null) this.#faults.push(...weaknesses(name, previous))
    return previous
  }

  #secret(
    name: 'REALTIME_HMAC_SECRET' | 'REALTIME_API_KEY',
    place: string,
    fromFile: string | undefined,
    optional = false
  ): string {
    const sources = [
      { name, text: this.#values[name] },
      { name: `${FILE_FAULT} ${place}`, text: fromFile }
    ]
    return this.#chooseSecret(sources, optional, this.#isTold(name))
  }

  #chooseSecret(sources: readonly SecretSource[], optional = false, faulty = false): string {
    return chooseSecret(sources, { production: this.#production, optional, faulty }, this.#faults)
  }

  #adminPassword({ admin = {} }: RelayConfigFile): string | null {
    const { RELAY_ADMIN_PASSWORD } = this.#values
    if (RELAY_ADMIN_PASSWORD !== null) return this.#longEnough('RELAY_ADMIN_PASSWORD', RELAY_ADMIN_PASSWORD)
    if (!admin.enabled) return null
    if (admin.password !== undefined) return this.#longEnough(`${FILE_FAULT} admin.password`, admin.password)
    this.#complain('admin.password', 'is missing')
    return null
  }

  #longEnough(name: string, password: string): string {
    if (this.#production && password.length < MIN_PASSWORD_LENGTH)
      this.#faults.push(`${name} must have at least ${MIN_PASSWORD_LENGTH} characters in production`)
    return password
  }

  #engine({
    engine: file = {}
  }: RelayConfigFile): Pick<RelayConfig, 'engine' | 'redisUrl' | 'redisPrefix' | 'presenceTtlMs'> {
    const engine = this.#choose('RELAY_ENGINE', file.type)
    const redisUrl = this.#choose('REDIS_URL', file.redis?.address)
    if (file.redis?.address !== undefined && !areRedisUrls(file.redis.address))
      this.#complain('engine.redis.address', `must be ${REDIS_URLS_RULE}`)
    if (engine === 'redis' && redisUrl === null && !this.#isTold('REDIS_URL'))
      this.#faults.push('REDIS_URL is required with RELAY_ENGINE=redis')
    if (file.redis?.prefix !== undefined && !isRedisPrefix(file.redis.prefix))
      this.#complain('engine.redis.prefix', `must be ${REDIS_PREFIX_RULE}`)
    const redisPrefix = this.#choose('RELAY_REDIS_PREFIX', file.redis?.prefix)
    const presenceTtlMs = durationMs(file.redis?.presence_ttl ?? DEFAULT_PRESENCE_TTL)
    if (presenceTtlMs < MIN_PRESENCE_TTL_MS) this.#complain('engine.redis.presence_ttl', 'must be at least 1s')
    return { engine, redisUrl, redisPrefix, presenceTtlMs }
  }

  #refuseInsecure({ client, http_api }: RelayConfigFile): void {
    if (client?.insecure) this.#complain('client.insecure', 'is refused in production')
    if (http_api?.insecure) this.#complain('http_api.insecure', 'is refused in production')
  }
}
