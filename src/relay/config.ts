import { type Environment, isGiven, readSettings, SettingsFault, type SettingValues } from '../shared/env.js'
import { areRedisUrls, isRedisPrefix, REDIS_PREFIX_RULE, REDIS_URLS_RULE } from '../shared/redis-urls.js'
import { FILE_FAULT, type ReadFile, readConfigFile } from './config-file.js'
import type { RelayConfigFile } from './config-schema.js'
import { chooseSecret, type SecretSource, weaknesses } from './config-secrets.js'
import { type Complain, channelRules, clientOptions, type TokenSecrets } from './config-sections.js'
import type { ChannelRules, ClientOptions } from './core/options.js'
import { durationMs } from './duration.js'
import { relaySettings } from './settings.js'

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

  readonly #complain: Complain = (place, what) => {
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
