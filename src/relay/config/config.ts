import { randomBytes } from 'node:crypto'
import { type Environment, isGiven, readSettings, SettingsError, type SettingValues } from '../../shared/env.js'
import { areRedisUrls, isRedisPrefix, REDIS_PREFIX_RULE, REDIS_URLS_RULE } from '../../shared/redis-urls.js'
import type { ChannelRules, ClientOptions } from '../core/options.js'
import { channelRules } from './channel-options.js'
import { clientOptions, type TokenSecrets } from './client-options.js'
import { FILE_ERROR_PREFIX, type ReadFile, type ReportError, readConfigFile } from './file.js'
import { durationMs, type RelayConfigFile } from './schema.js'
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
    /** Still accepted while the key is rotated. */
    readonly previousKey: string | null
    readonly maxBodyBytes: number
    readonly insecure: boolean
    readonly errorMode: 'default' | 'transport'
  }
  readonly trustedProxies: readonly string[]
  readonly metricsAllow: readonly string[]
  /** Null disables the operators' page. */
  readonly adminPassword: string | null
  readonly engine: 'memory' | 'redis'
  /** Not null if the engine is `redis`. */
  readonly redisUrl: string | null
  /** Prefix of all keys and channels in Redis. */
  readonly redisPrefix: string
  /** How long the presence of a crashed relay's clients remains. */
  readonly presenceTtlMs: number
  readonly workers: number
  readonly logLevel: Values['LOG_LEVEL']
  readonly shutdownMs: number
}

/** Reads the environment and the configuration file. Throws `SettingsError` with all errors. */
export const relayConfig = (environment: Environment, readFile: ReadFile): RelayConfig => {
  const errors: string[] = []
  const values = readSettings(relaySettings, environment, errors)
  const file = values.RELAY_CONFIG === null ? null : readConfigFile(values.RELAY_CONFIG, readFile, errors)
  // Options can only be checked in a file that could be read.
  if (values.RELAY_CONFIG !== null && file === null) throw new SettingsError(errors)
  const config = new ConfigReader(environment, values, file, errors).read()
  if (errors.length > 0) throw new SettingsError(errors)
  return config
}

const DEFAULT_SHUTDOWN = '5s'
const DEFAULT_PRESENCE_TTL = '60s'

const MIN_PRESENCE_TTL_MS = 1000

const MIN_PASSWORD_LENGTH = 12

const DEFAULT_BODY_BYTES = 1024 * 1024

/** Combines the sources: the environment wins over the file, the file over the default. */
class ConfigReader {
  readonly #environment: Environment
  readonly #values: Values
  readonly #file: RelayConfigFile | null
  readonly #errors: string[]
  readonly #isProduction: boolean

  constructor(environment: Environment, values: Values, file: RelayConfigFile | null, errors: string[]) {
    this.#environment = environment
    this.#values = values
    this.#file = file
    this.#errors = errors
    this.#isProduction = values.NODE_ENV === 'production'
  }

  read(): RelayConfig {
    const file = this.#file ?? {}
    const channels = channelRules(this.#file, this.#report)
    const client = clientOptions(file, this.#tokenSecrets(file), channels.namespaces, this.#report)
    const { TRUST_PROXY, METRICS_ALLOW, RELAY_WORKERS } = this.#values
    if (TRUST_PROXY.some((range) => range.endsWith('/0'))) this.#errors.push('TRUST_PROXY must not trust every address')
    if (this.#isProduction) this.#rejectInsecureOptions(file)
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

  readonly #report: ReportError = (path, problem) => {
    this.#errors.push(`${FILE_ERROR_PREFIX} ${path} ${problem}`)
  }

  #choose<Name extends keyof Values>(name: Name, fromFile: Values[Name] | undefined): Values[Name] {
    return isGiven(name, this.#environment) ? this.#values[name] : (fromFile ?? this.#values[name])
  }

  /** A malformed variable is not also reported as missing. */
  #isReported(name: string): boolean {
    return this.#errors.some((error) => error.startsWith(`${name} `) || error.startsWith(`${name}_FILE `))
  }

  #tokenSecrets({ client = {} }: RelayConfigFile): TokenSecrets {
    const { enabled = false, hmac_secret_key: subscriptionKey } = client.subscription_token ?? {}
    const key = client.token?.hmac_secret_key
    const tokenHmacSecret = this.#secret('REALTIME_HMAC_SECRET', 'client.token.hmac_secret_key', key, client.insecure)
    const tokenHmacSecretPrevious = this.#previousSecret('REALTIME_HMAC_SECRET_PREVIOUS')
    const connectionSecrets = { tokenHmacSecret, tokenHmacSecretPrevious }
    if (!enabled) {
      return {
        ...connectionSecrets,
        subscriptionTokenHmacSecret: tokenHmacSecret,
        subscriptionTokenHmacSecretPrevious: tokenHmacSecretPrevious
      }
    }
    const source = { name: `${FILE_ERROR_PREFIX} client.subscription_token.hmac_secret_key`, text: subscriptionKey }
    const subscriptionTokenHmacSecret = this.#chooseSecret([source], client.insecure, false)
    return { ...connectionSecrets, subscriptionTokenHmacSecret, subscriptionTokenHmacSecretPrevious: null }
  }

  #previousSecret(name: 'REALTIME_HMAC_SECRET_PREVIOUS' | 'REALTIME_API_KEY_PREVIOUS'): string | null {
    const previous = this.#values[name]
    if (this.#isProduction && previous !== null) this.#errors.push(...weaknesses(name, previous))
    return previous
  }

  #secret(
    name: 'REALTIME_HMAC_SECRET' | 'REALTIME_API_KEY',
    path: string,
    fromFile: string | undefined,
    isOptional = false
  ): string {
    const sources = [
      { name, text: this.#values[name] },
      { name: `${FILE_ERROR_PREFIX} ${path}`, text: fromFile }
    ]
    return this.#chooseSecret(sources, isOptional, this.#isReported(name))
  }

  #chooseSecret(sources: readonly SecretSource[], isOptional = false, isMalformed = false): string {
    return chooseSecret(sources, { isProduction: this.#isProduction, isOptional, isMalformed }, this.#errors)
  }

  #adminPassword({ admin = {} }: RelayConfigFile): string | null {
    const { RELAY_ADMIN_PASSWORD } = this.#values
    if (RELAY_ADMIN_PASSWORD !== null) return this.#checkPasswordLength('RELAY_ADMIN_PASSWORD', RELAY_ADMIN_PASSWORD)
    if (!admin.enabled) return null
    if (admin.password !== undefined)
      return this.#checkPasswordLength(`${FILE_ERROR_PREFIX} admin.password`, admin.password)
    this.#report('admin.password', 'is missing')
    return null
  }

  #checkPasswordLength(name: string, password: string): string {
    if (this.#isProduction && password.length < MIN_PASSWORD_LENGTH)
      this.#errors.push(`${name} must have at least ${MIN_PASSWORD_LENGTH} characters in production`)
    return password
  }

  #engine({
    engine: file = {}
  }: RelayConfigFile): Pick<RelayConfig, 'engine' | 'redisUrl' | 'redisPrefix' | 'presenceTtlMs'> {
    const engine = this.#choose('RELAY_ENGINE', file.type)
    const redisUrl = this.#choose('REDIS_URL', file.redis?.address)
    if (file.redis?.address !== undefined && !areRedisUrls(file.redis.address))
      this.#report('engine.redis.address', `must be ${REDIS_URLS_RULE}`)
    if (engine === 'redis' && redisUrl === null && !this.#isReported('REDIS_URL'))
      this.#errors.push('REDIS_URL is required with RELAY_ENGINE=redis')
    if (file.redis?.prefix !== undefined && !isRedisPrefix(file.redis.prefix))
      this.#report('engine.redis.prefix', `must be ${REDIS_PREFIX_RULE}`)
    const redisPrefix = this.#choose('RELAY_REDIS_PREFIX', file.redis?.prefix)
    const presenceTtlMs = durationMs(file.redis?.presence_ttl ?? DEFAULT_PRESENCE_TTL)
    if (presenceTtlMs < MIN_PRESENCE_TTL_MS) this.#report('engine.redis.presence_ttl', 'must be at least 1s')
    return { engine, redisUrl, redisPrefix, presenceTtlMs }
  }

  #rejectInsecureOptions({ client, http_api }: RelayConfigFile): void {
    if (client?.insecure) this.#report('client.insecure', 'is not allowed in production')
    if (http_api?.insecure) this.#report('http_api.insecure', 'is not allowed in production')
  }
}

/** A possible source of a secret. */
interface SecretSource {
  /** As it is named in error messages. */
  readonly name: string
  readonly text: string | null | undefined
}

interface SecretRule {
  readonly isProduction: boolean
  /** The secret is not used, because the insecure option is on. */
  readonly isOptional: boolean
  /** A source is malformed, which has been reported already. */
  readonly isMalformed: boolean
}

const STRONG_SECRET = /^[0-9a-f]{64}$/i

/** Rejects secrets such as "0000…" and "abab…". */
const MIN_DISTINCT_CHARACTERS = 4

const RANDOM_BYTES = 32

/** The first source with a value. An optional secret becomes random, so that an empty secret never matches. */
const chooseSecret = (sources: readonly SecretSource[], rule: SecretRule, errors: string[]): string => {
  const chosen = sources.find(({ text }) => typeof text === 'string')
  if (typeof chosen?.text !== 'string') {
    if (!rule.isOptional && !rule.isMalformed) errors.push(`${sources[0]?.name} is required`)
    return randomBytes(RANDOM_BYTES).toString('hex')
  }
  if (rule.isProduction) errors.push(...weaknesses(chosen.name, chosen.text))
  return chosen.text
}

/** Reasons why a secret is too weak for production. */
const weaknesses = (name: string, secret: string): readonly string[] => {
  if (!STRONG_SECRET.test(secret)) return [`${name} must be 64 hex characters in production`]
  if (new Set(secret).size >= MIN_DISTINCT_CHARACTERS) return []
  return [`${name} is too easy to guess: use at least ${MIN_DISTINCT_CHARACTERS} different characters`]
}
