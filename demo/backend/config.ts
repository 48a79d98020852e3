import { type Environment, readSettings, SettingsError } from '../../src/shared/env.js'
import { publisherSettings } from '../../src/shared/publisher.js'
import { headerSecret, integer, list, oneOf, secret, text } from '../../src/shared/setting-kinds.js'

const required = (about: string) => secret({ about: `required: ${about}`, fallback: null })

/** The settings of the demo backend. `npm start` sets the required ones. */
export const demoSettings = {
  DEMO_BACKEND_HOST: text('text', {
    about: 'listen address; only the gateway must reach it',
    fallback: '127.0.0.1'
  }),
  DEMO_BACKEND_PORT: integer(0, 65535, { about: 'listen port; 0 selects a free port', fallback: 4000 }),
  TRUST_PROXY: list('address-range', {
    about: 'proxies whose X-Forwarded-For header is trusted, in addition to loopback'
  }),
  DEMO_SIMULATOR: oneOf(['on', 'off'], { about: 'off: people do not move', fallback: 'on' }),
  DEMO_BCRYPT_ROUNDS: integer(4, 15, {
    about: 'cost of new password hashes, each step doubles it; set it before the first start',
    fallback: 10
  }),
  DEMO_PASSWORD: required('password of the three demo accounts, at least 8 characters; `npm start` generates one'),
  TOKEN_SECRET: required("signs app tokens, at least 32 characters; equal to the gateway's API_SECRET"),
  EXCHANGE_SECRET: headerSecret({
    about: "if set, logins without a password must send it as X-Exchange-Secret; equal to the gateway's",
    fallback: null
  }),
  REALTIME_SIGNING_SECRET: secret({
    about: "signs the relay's events to this backend; equal to the relay's; if unset, the backend receives none",
    fallback: null
  }),
  DATABASE_URL: text('postgres-url', {
    about: 'PostgreSQL; if unset, an embedded database in memory',
    fallback: null
  }),
  ...publisherSettings,
  REALTIME_CLIENT_URL: text('text', {
    about:
      "the relay's WebSocket address, such as ws://localhost:8100/connection/websocket, which /api/negotiate returns",
    fallback: null
  }),
  REALTIME_HMAC_SECRET: required("signs relay tokens; equal to the relay's"),
  LOG_LEVEL: oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], {
    about: 'minimum level of log lines',
    fallback: 'info'
  })
}

const SHORTEST: Readonly<Record<string, number>> = {
  TOKEN_SECRET: 32,
  EXCHANGE_SECRET: 32,
  REALTIME_SIGNING_SECRET: 32,
  DEMO_PASSWORD: 8
}

const OPTIONAL: ReadonlySet<string> = new Set(['DATABASE_URL', 'EXCHANGE_SECRET', 'REALTIME_SIGNING_SECRET'])

export type DemoConfig = ReturnType<typeof demoConfig>

/** Reads the environment. Throws `SettingsError` with all errors. */
export const demoConfig = (environment: Environment) => {
  const errors: string[] = []
  const values = readSettings(demoSettings, environment, errors)
  for (const [name, value] of Object.entries(values)) {
    const { [name]: least = 0 } = SHORTEST
    const isMissing = value === null && !OPTIONAL.has(name) && !errors.some((error) => error.startsWith(name))
    if (isMissing) errors.push(`${name} is required`)
    if (typeof value === 'string' && value.length < least) errors.push(`${name} must have at least ${least} characters`)
  }
  const clientUrl = values.REALTIME_CLIENT_URL ?? ''
  if (clientUrl !== '' && !/^wss?:\/\/\S+$/.test(clientUrl))
    errors.push('REALTIME_CLIENT_URL must be an address such as ws://localhost:8100/connection/websocket')
  if (errors.length > 0) throw new SettingsError(errors)
  return {
    listen: { host: values.DEMO_BACKEND_HOST, port: values.DEMO_BACKEND_PORT },
    trustedProxies: values.TRUST_PROXY,
    simulator: values.DEMO_SIMULATOR === 'on',
    bcryptRounds: values.DEMO_BCRYPT_ROUNDS,
    demoPassword: values.DEMO_PASSWORD ?? '',
    tokenSecret: values.TOKEN_SECRET ?? '',
    exchangeSecret: values.EXCHANGE_SECRET,
    eventsSecret: values.REALTIME_SIGNING_SECRET,
    databaseUrl: values.DATABASE_URL,
    publish: { url: values.REALTIME_PUBLISH_URL ?? '', apiKey: values.REALTIME_API_KEY ?? '' },
    relay: { clientUrl, secret: values.REALTIME_HMAC_SECRET ?? '' },
    logLevel: values.LOG_LEVEL
  }
}
