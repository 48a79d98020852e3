import { availableParallelism } from 'node:os'
import { integer, list, oneOf, secret, text } from '../../shared/setting-kinds.js'

const MAX_WORKERS = 256
const workers = integer(1, MAX_WORKERS, {
  about: 'processes that share the port on one machine; auto is one per core',
  fallback: 1
})

/** Every setting of the relay. The documentation's table is checked against this one. */
export const relaySettings = {
  NODE_ENV: oneOf(['development', 'production', 'test'], {
    about: 'production asks for strong secrets and refuses the insecure options of the file',
    fallback: 'development'
  }),
  RELAY_HOST: text('text', { about: 'address to listen on', fallback: '127.0.0.1' }),
  RELAY_PORT: integer(0, 65535, { about: 'port to listen on; 0 takes a free one', fallback: 8100 }),
  REALTIME_HMAC_SECRET: secret({
    about: 'verifies relay tokens, as the text that it is; required, in production 64 hex characters',
    fallback: null
  }),
  REALTIME_API_KEY: secret({
    about: 'key of the publish API; required, in production 64 hex characters',
    fallback: null
  }),
  REALTIME_HMAC_SECRET_PREVIOUS: secret({
    about: 'a REALTIME_HMAC_SECRET that is being replaced: its tokens are still accepted',
    fallback: null
  }),
  REALTIME_API_KEY_PREVIOUS: secret({
    about: 'a REALTIME_API_KEY that is being replaced: it is still accepted',
    fallback: null
  }),
  RELAY_ALLOWED_ORIGINS: list('origin-pattern', {
    about: 'pages that may connect; where empty, those on the same host; * alone allows all'
  }),
  RELAY_CONFIG: text('text', { about: 'JSON file with namespaces, limits and client options', fallback: null }),
  RELAY_ADMIN_PASSWORD: secret({
    about: "operators' password, in production at least 12 characters; without one there is no admin page",
    fallback: null
  }),
  RELAY_ENGINE: oneOf(['memory', 'redis'], {
    about: 'redis, with REDIS_URL, lets several relays act as one',
    fallback: 'memory'
  }),
  REDIS_URL: text('redis-urls', {
    about: 'for RELAY_ENGINE=redis: one server, several that share the channels, or some of a Redis Cluster',
    fallback: null
  }),
  RELAY_REDIS_PREFIX: text('redis-prefix', {
    about: 'what all keys and channels in Redis begin with; relays with another one know nothing of each other',
    fallback: 'gatehouse'
  }),
  RELAY_WORKERS: {
    ...workers,
    rule: `${workers.rule}, or auto`,
    parse: (text: string) => (text === 'auto' ? Math.min(availableParallelism(), MAX_WORKERS) : workers.parse(text))
  },
  TRUST_PROXY: list('address-range', { about: 'whose X-Forwarded-For names the client' }),
  METRICS_ALLOW: list('address-range', { about: 'who may read /metrics beside this machine itself' }),
  LOG_LEVEL: oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], {
    about: 'how much is logged',
    fallback: 'info'
  })
}
