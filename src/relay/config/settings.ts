import { availableParallelism } from 'node:os'
import { flag, integer, list, oneOf, redisUrl, secret, shutdownDelay, text } from '../../shared/setting-kinds.js'
import { ENGINE_KINDS } from './engine-kinds.js'

const MAX_WORKERS = 256
const workers = integer(1, MAX_WORKERS, {
  about: 'worker processes that share the port; auto: one per core',
  fallback: 1
})

/**
 * Every setting of the relay. A new setting also needs its field in `config.ts`, a line in `.env.example`, a topic in
 * `scripts/lib/settings-docs.ts`, and `npm run docs`. docs/how-to/extend.md lists all steps.
 */
export const relaySettings = {
  NODE_ENV: oneOf(['development', 'production', 'test'], {
    about:
      'production requires strong secrets and rejects the insecure options of the configuration file; the default for a relay that other machines can reach',
    fallback: null
  }),
  RELAY_HOST: text('text', { about: 'listen address', fallback: '127.0.0.1' }),
  RELAY_PORT: integer(0, 65535, { about: 'listen port; 0 selects a free port', fallback: 8100 }),
  REALTIME_HMAC_SECRET: secret({
    about:
      'verifies relay tokens; used as text, not hex-decoded; required unless the file has public keys, 64 hex characters in production',
    fallback: null
  }),
  REALTIME_API_KEY: secret({
    about: 'key of the publish API; required, 64 hex characters in production',
    fallback: null
  }),
  REALTIME_HMAC_SECRET_PREVIOUS: secret({
    about: 'the previous REALTIME_HMAC_SECRET during a rotation; its tokens are still accepted',
    fallback: null
  }),
  REALTIME_API_KEY_PREVIOUS: secret({
    about: 'the previous REALTIME_API_KEY during a rotation; still accepted',
    fallback: null
  }),
  REALTIME_SIGNING_SECRET: secret({
    about:
      'signs requests to backends (event proxies and webhooks) that have no signing_secret in the file; 64 hex characters in production',
    fallback: null
  }),
  REALTIME_SIGNING_SECRET_PREVIOUS: secret({
    about: 'the previous REALTIME_SIGNING_SECRET during a rotation; requests have a second signature with it',
    fallback: null
  }),
  RELAY_ALLOWED_ORIGINS: list('origin-pattern', {
    about:
      'origins that may connect, and loopback origins outside production; if empty, only the origin of the same host; * alone allows all'
  }),
  RELAY_CONFIG: text('text', {
    about: 'path of the JSON, YAML or TOML file with namespaces, limits and client options',
    fallback: null
  }),
  RELAY_ADMIN_PASSWORD: secret({
    about: "password of the operators' page, at least 12 characters in production; if unset, the page is disabled",
    fallback: null
  }),
  RELAY_ENGINE: oneOf(ENGINE_KINDS, {
    about: 'memory, or redis with REDIS_URL to run several relay nodes as one',
    fallback: 'memory'
  }),
  REDIS_URL: redisUrl({
    about:
      'for RELAY_ENGINE=redis: one server, several servers that share the channels, servers of a Redis Cluster, or Redis Sentinel',
    fallback: null
  }),
  RELAY_REDIS_PREFIX: text('redis-prefix', {
    about: 'prefix of all keys and channels in Redis; relays with different prefixes are independent of each other',
    fallback: 'gatehouse'
  }),
  RELAY_WORKERS: {
    ...workers,
    rule: `${workers.rule}, or auto`,
    parse: (text: string) => (text === 'auto' ? Math.min(availableParallelism(), MAX_WORKERS) : workers.parse(text))
  },
  TRUST_PROXY: list('address-range', { about: 'proxies whose X-Forwarded-For header is trusted' }),
  METRICS_ALLOW: list('address-range', { about: 'addresses that may read /metrics in addition to loopback' }),
  RELAY_WARM_UP: flag({
    about:
      'connect clients to a second relay in the process before the start, so that the first real clients cost less; default: true in production',
    fallback: null
  }),
  SHUTDOWN_DELAY_MS: shutdownDelay,
  LOG_LEVEL: oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], {
    about: 'minimum level of log lines',
    fallback: 'info'
  })
}
