import { type Environment, isGiven, readSettings, SettingsError, type SettingValues } from '../../shared/env.js'
import type { ListenSettings } from '../../shared/listen-error.js'
import { isRedisPrefix, REDIS_PREFIX_RULE, REDIS_URL_RULE, redisUrlError } from '../../shared/redis-address.js'
import { weaknesses } from '../../shared/secret-strength.js'
import type { ChannelRules, ClientOptions, RpcRules } from '../core/options.js'
import { channelRules } from './channel-options.js'
import { clientOptions } from './client-options.js'
import type { EngineConfig, EngineKind } from './engine-kinds.js'
import { hasOtherMapBroker, redisAddress } from './engine-options.js'
import { FILE_ERROR_PREFIX, type ReadFile, type ReportError, readConfigFile, reportIn } from './file.js'
import { type ProxyConfig, proxyConfig, rpcRules } from './proxy-selection.js'
import type { RelayConfigFile } from './schema.js'
import { durationMs, durationOr } from './schema-kinds.js'
import { chooseSecret, FILE_SECRET_FORM, isProduction, modeHint, SECRET_FORM, type SecretSource } from './secrets.js'
import { relaySettings } from './settings.js'
import { hasPublicKey, type TokenKeys, tokenKeys } from './token-options.js'
import type { FileSubscriptionToken } from './token-schema.js'
import {
  type EnabledEndpoints,
  enabledEndpoints,
  type UnidirectionalOptions,
  unidirectionalOptions
} from './transport-options.js'

type RelaySettings = SettingValues<typeof relaySettings>

export interface ListenAddress {
  readonly host: string
  readonly port: number
}

export interface RelayConfig {
  readonly listen: ListenAddress
  /** The listener of the API, the operators' page, metrics and health; null if they share the one of the clients. */
  readonly internalListen: ListenAddress | null
  /** Lower case. */
  readonly allowedOrigins: readonly string[]
  /** Whether pages of loopback addresses may connect too: in development. */
  readonly allowsLoopback: boolean
  readonly client: ClientOptions
  readonly tokens: { readonly connection: TokenKeys; readonly subscription: TokenKeys }
  readonly channels: ChannelRules
  readonly rpc: RpcRules
  /** Backends that are asked about events. */
  readonly proxies: ProxyConfig
  readonly api: {
    readonly key: string
    /** Still accepted while the key is rotated. */
    readonly previousKey: string | null
    readonly maxBodyBytes: number
    readonly insecure: boolean
    readonly errorMode: 'default' | 'transport'
    /** With an internal listener: served where clients connect instead. */
    readonly isExternal: boolean
  }
  /** Transports of clients that only receive. */
  readonly unidirectional: UnidirectionalOptions
  readonly endpoints: EnabledEndpoints
  readonly trustedProxies: readonly string[]
  readonly metricsAllow: readonly string[]
  /** Metrics that are exported only if they are enabled. */
  readonly metrics: { readonly recoveredPublications: boolean; readonly httpRequests: boolean }
  /** Null disables the operators' page. */
  readonly adminPassword: string | null
  /** With an internal listener: the operators' page is served where clients connect instead. */
  readonly isAdminExternal: boolean
  readonly engine: EngineConfig
  /** How long a channel must be without subscribers before it counts as vacated. */
  readonly vacatedDelayMs: number
  readonly workers: number
  /** Null: named by its role. */
  readonly nodeName: string | null
  readonly logLevel: RelaySettings['LOG_LEVEL']
  /** Null: standard output. */
  readonly logFile: string | null
  readonly shutdownMs: number
  readonly shutdownDelayMs: number
  readonly warmsUp: boolean
  /** A line for each option of Centrifugo that is accepted without its effect. */
  readonly ineffectiveOptions: readonly string[]
}

/** The settings of the listen addresses, for error messages. */
export const LISTEN_SETTINGS: ListenSettings = { host: 'RELAY_HOST', port: 'RELAY_PORT' }
export const INTERNAL_LISTEN_SETTINGS: ListenSettings = {
  host: `${FILE_ERROR_PREFIX} http_server.internal_address`,
  port: `${FILE_ERROR_PREFIX} http_server.internal_port`
}

/** Reads the environment and the configuration file. Throws `SettingsError` with all errors. */
export const relayConfig = (environment: Environment, readFile: ReadFile): RelayConfig => {
  const errors: string[] = []
  const values = readSettings(relaySettings, environment, errors)
  const engine = isGiven('RELAY_ENGINE', environment) ? values.RELAY_ENGINE : null
  const notes: string[] = []
  const file =
    values.RELAY_CONFIG === null ? null : readConfigFile(values.RELAY_CONFIG, readFile, errors, engine, notes)
  // Options can only be checked in a file that could be read.
  if (values.RELAY_CONFIG !== null && file === null) throw new SettingsError(errors)
  const config = new ConfigReader(environment, values, file, errors).read()
  if (values.NODE_ENV === null) errors.push(...modeHint(errors))
  if (errors.length > 0) throw new SettingsError(errors)
  // Centrifugo starts without a password too. Its page is then open to nobody, or to everyone.
  if (file?.admin?.enabled && config.adminPassword === null)
    notes.push('admin.enabled has no effect: the page needs admin.password or RELAY_ADMIN_PASSWORD')
  return Object.freeze({ ...config, ineffectiveOptions: Object.freeze(notes) })
}

const DEFAULT_SHUTDOWN = '5s'
const DEFAULT_PRESENCE_TTL = '60s'
const DEFAULT_VACATED_DELAY = '5s'
const MIN_PRESENCE_TTL_MS = 1000

const MAX_PORT = 65_535

const MIN_PASSWORD_LENGTH = 12

const DEFAULT_BODY_BYTES = 1024 * 1024

/** Combines the sources: the environment wins over the file, the file over the default. */
class ConfigReader {
  readonly #environment: Environment
  readonly #values: RelaySettings
  readonly #file: RelayConfigFile | null
  readonly #errors: string[]
  readonly #isProduction: boolean

  constructor(environment: Environment, values: RelaySettings, file: RelayConfigFile | null, errors: string[]) {
    this.#environment = environment
    this.#values = values
    this.#file = file
    this.#errors = errors
    this.#isProduction = isProduction(values.NODE_ENV, this.#choose('RELAY_HOST', file?.http_server?.address))
  }

  read(): Omit<RelayConfig, 'ineffectiveOptions'> {
    const file = this.#file ?? {}
    const channels = channelRules(this.#file, this.#report)
    const client = clientOptions(file, channels, this.#report)
    const { TRUST_PROXY, METRICS_ALLOW, RELAY_WORKERS } = this.#values
    if (TRUST_PROXY.some((range) => range.endsWith('/0'))) this.#errors.push('TRUST_PROXY must not trust every address')
    if (this.#isProduction) this.#rejectInsecureOptions(file)
    const listen = Object.freeze({
      host: this.#choose('RELAY_HOST', file.http_server?.address),
      port: this.#choose('RELAY_PORT', file.http_server?.port)
    })
    return Object.freeze({
      listen,
      internalListen: this.#internalListen(file, listen),
      allowedOrigins: Object.freeze(
        this.#choose('RELAY_ALLOWED_ORIGINS', file.client?.allowed_origins).map((origin) => origin.toLowerCase())
      ),
      allowsLoopback: !this.#isProduction,
      client,
      tokens: this.#tokens(file),
      channels,
      rpc: rpcRules(file, this.#report),
      proxies: proxyConfig(
        file,
        { isProduction: this.#isProduction, signingSecrets: this.#signingSecrets() },
        this.#report
      ),
      api: Object.freeze({
        key: this.#secret('REALTIME_API_KEY', 'http_api.key', file.http_api?.key, file.http_api?.insecure),
        previousKey: this.#previousSecret('REALTIME_API_KEY_PREVIOUS'),
        maxBodyBytes: file.http_api?.max_body_size ?? DEFAULT_BODY_BYTES,
        insecure: file.http_api?.insecure ?? false,
        errorMode: file.http_api?.error_mode ?? 'default',
        isExternal: file.http_api?.external ?? false
      }),
      unidirectional: unidirectionalOptions(file),
      endpoints: enabledEndpoints(file),
      trustedProxies: Object.freeze(TRUST_PROXY),
      metricsAllow: Object.freeze(['loopback', ...METRICS_ALLOW]),
      metrics: Object.freeze({
        recoveredPublications: file.prometheus?.recovered_publications_histogram ?? false,
        httpRequests: file.prometheus?.instrument_http_handlers ?? false
      }),
      adminPassword: this.#adminPassword(file),
      isAdminExternal: file.admin?.external ?? false,
      engine: this.#engine(file),
      vacatedDelayMs: durationOr(file.engine?.redis?.channel_state?.vacated_event_delay, DEFAULT_VACATED_DELAY),
      workers: RELAY_WORKERS,
      nodeName: file.node?.name ?? null,
      logLevel: this.#choose('LOG_LEVEL', file.log?.level === 'none' ? 'silent' : file.log?.level),
      logFile: file.log?.file ?? null,
      shutdownMs: durationMs(file.shutdown?.timeout ?? DEFAULT_SHUTDOWN),
      shutdownDelayMs: this.#values.SHUTDOWN_DELAY_MS,
      warmsUp: this.#values.RELAY_WARM_UP ?? this.#isProduction
    })
  }

  /** The address and the port default to those for clients. An empty text is unset, as in Centrifugo. */
  #internalListen({ http_server: http = {} }: RelayConfigFile, listen: ListenAddress): ListenAddress | null {
    const { internal_address: address = '', internal_port: portText = '' } = http
    const host = address === '' ? listen.host : address
    const port = portText === '' ? listen.port : Number(portText)
    if (port > MAX_PORT) this.#report('http_server.internal_port', `must be a whole number from 0 to ${MAX_PORT}`)
    const isSame = host === listen.host && (portText === '' || (port !== 0 && port === listen.port))
    return isSame ? null : Object.freeze({ host, port })
  }

  readonly #report: ReportError = (path, problem) => {
    this.#errors.push(`${FILE_ERROR_PREFIX} ${path} ${problem}`)
  }

  #choose<Name extends keyof RelaySettings>(
    name: Name,
    fromFile: RelaySettings[Name] | undefined
  ): RelaySettings[Name] {
    return isGiven(name, this.#environment) ? this.#values[name] : (fromFile ?? this.#values[name])
  }

  /** A malformed variable is not also reported as missing. */
  #isReported(name: string): boolean {
    return this.#errors.some((error) => error.startsWith(`${name} `) || error.startsWith(`${name}_FILE `))
  }

  /** The keys of connection tokens and of subscription tokens. */
  #tokens({ client = {} }: RelayConfigFile): RelayConfig['tokens'] {
    const { token = {}, subscription_token: separate = {}, insecure = false } = client
    const path = 'client.token'
    // With a connect proxy, clients need no token.
    const isOptional = insecure || hasPublicKey(token) || (client.proxy?.connect?.enabled ?? false)
    const fromEnvironment = this.#values.REALTIME_HMAC_SECRET
    const isGiven = fromEnvironment !== null || token.hmac_secret_key !== undefined
    const connection = tokenKeys(
      token,
      {
        // Without a secret, public keys are the only keys.
        secret:
          isGiven || !hasPublicKey(token)
            ? this.#secret('REALTIME_HMAC_SECRET', `${path}.hmac_secret_key`, token.hmac_secret_key, isOptional)
            : null,
        previous: this.#previousSecret(
          'REALTIME_HMAC_SECRET_PREVIOUS',
          `${path}.hmac_previous_secret_key`,
          token.hmac_previous_secret_key
        )
      },
      reportIn(path, this.#report)
    )
    return Object.freeze({ connection, subscription: this.#subscriptionTokens(separate, connection, insecure) })
  }

  /** Subscription tokens have the keys of connection tokens, or only their own. */
  #subscriptionTokens(file: FileSubscriptionToken, connection: TokenKeys, insecure: boolean): TokenKeys {
    const path = 'client.subscription_token'
    const { enabled, ...options } = file
    if (!enabled) {
      if (enabled === undefined && Object.keys(options).length > 0) this.#report(path, 'needs "enabled": true')
      return connection
    }
    const name = (option: string): string => `${FILE_ERROR_PREFIX} ${path}.${option}`
    const source = { name: name('hmac_secret_key'), text: file.hmac_secret_key, form: FILE_SECRET_FORM }
    const isPublic = hasPublicKey(file) && file.hmac_secret_key === undefined
    const { hmac_previous_secret_key: previous = null } = file
    if (this.#isProduction && previous !== null)
      this.#errors.push(...weaknesses(name('hmac_previous_secret_key'), previous, FILE_SECRET_FORM))
    const secret = isPublic ? null : this.#chooseSecret([source], insecure)
    return tokenKeys(file, { secret, previous }, reportIn(path, this.#report))
  }

  /** The environment wins over the file. */
  #previousSecret(
    name: 'REALTIME_HMAC_SECRET_PREVIOUS' | 'REALTIME_API_KEY_PREVIOUS' | 'REALTIME_SIGNING_SECRET_PREVIOUS',
    path = '',
    fromFile: string | undefined = undefined
  ): string | null {
    const previous = this.#values[name] ?? fromFile ?? null
    const [source, form] =
      this.#values[name] === null ? [`${FILE_ERROR_PREFIX} ${path}`, FILE_SECRET_FORM] : [name, SECRET_FORM]
    if (this.#isProduction && previous !== null) this.#errors.push(...weaknesses(source, previous, form))
    return previous
  }

  /** Sign the requests of proxies without secrets of their own. */
  #signingSecrets(): readonly string[] {
    const name = 'REALTIME_SIGNING_SECRET'
    const { [name]: current } = this.#values
    const previous = this.#previousSecret(`${name}_PREVIOUS`)
    if (current === null) {
      if (previous !== null) this.#errors.push(`${name} is required with ${name}_PREVIOUS`)
      return []
    }
    return [this.#chooseSecret([{ name, text: current, form: SECRET_FORM }]), ...(previous === null ? [] : [previous])]
  }

  #secret(
    name: 'REALTIME_HMAC_SECRET' | 'REALTIME_API_KEY',
    path: string,
    fromFile: string | undefined,
    isOptional = false
  ): string {
    const sources = [
      { name, text: this.#values[name], form: SECRET_FORM },
      { name: `${FILE_ERROR_PREFIX} ${path}`, text: fromFile, form: FILE_SECRET_FORM }
    ]
    return this.#chooseSecret(sources, isOptional, this.#isReported(name))
  }

  #chooseSecret(sources: readonly SecretSource[], isOptional = false, isMalformed = false): string {
    return chooseSecret(sources, { isProduction: this.#isProduction, isOptional, isMalformed }, this.#errors)
  }

  #adminPassword({ admin = {} }: RelayConfigFile): string | null {
    const { RELAY_ADMIN_PASSWORD } = this.#values
    if (RELAY_ADMIN_PASSWORD !== null) return this.#checkPasswordLength('RELAY_ADMIN_PASSWORD', RELAY_ADMIN_PASSWORD)
    return admin.enabled && admin.password !== undefined
      ? this.#checkPasswordLength(`${FILE_ERROR_PREFIX} admin.password`, admin.password)
      : null
  }

  #checkPasswordLength(name: string, password: string): string {
    if (this.#isProduction && password.length < MIN_PASSWORD_LENGTH)
      this.#errors.push(`${name} must have at least ${MIN_PASSWORD_LENGTH} characters in production`)
    return password
  }

  #engine(all: RelayConfigFile): EngineConfig {
    const { engine: file = {} } = all
    const kind = this.#choose('RELAY_ENGINE', file.type)
    if (hasOtherMapBroker(all, kind)) this.#report('map_broker.type', `must be "${kind}", as the engine`)
    if (file.redis?.prefix !== undefined && !isRedisPrefix(file.redis.prefix))
      this.#report('engine.redis.prefix', `must be ${REDIS_PREFIX_RULE}`)
    const presenceTtlMs = durationOr(file.redis?.presence_ttl, DEFAULT_PRESENCE_TTL)
    if (presenceTtlMs < MIN_PRESENCE_TTL_MS) this.#report('engine.redis.presence_ttl', 'must be at least 1s')
    const readers: { readonly [Kind in EngineKind]: () => EngineConfig<Kind> } = {
      memory: () => ({ kind: 'memory' }),
      redis: () => this.#redisEngine(file, presenceTtlMs)
    }
    return Object.freeze(readers[kind]())
  }

  #redisEngine(file: NonNullable<RelayConfigFile['engine']>, presenceTtlMs: number): EngineConfig<'redis'> {
    const address = redisAddress(file)
    const addressError = address === undefined ? null : redisUrlError(address)
    if (addressError !== null) this.#report('engine.redis.address', `must be ${REDIS_URL_RULE}: ${addressError}`)
    const url = this.#choose('REDIS_URL', address)
    if (url === null && !this.#isReported('REDIS_URL'))
      this.#errors.push('REDIS_URL is required with RELAY_ENGINE=redis')
    const prefix = this.#choose('RELAY_REDIS_PREFIX', file.redis?.prefix)
    return { kind: 'redis', url: url ?? '', prefix, presenceTtlMs }
  }

  #rejectInsecureOptions({ client, http_api }: RelayConfigFile): void {
    if (client?.insecure) this.#report('client.insecure', 'is not allowed in production')
    if (http_api?.insecure) this.#report('http_api.insecure', 'is not allowed in production')
  }
}
