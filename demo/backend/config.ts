import { type Environment, readSettings, SettingsFault } from '../../src/shared/env.js'
import { publisherSettings } from '../../src/shared/publisher.js'
import { integer, list, oneOf, secret, text } from '../../src/shared/setting-kinds.js'

/** Every setting of the demo's backend. `npm start` sets those that are required. */
export const demoSettings = {
  DEMO_BACKEND_HOST: text('text', {
    about: 'address the demo backend listens on; one that only the gateway can reach',
    fallback: '127.0.0.1'
  }),
  DEMO_BACKEND_PORT: integer(0, 65535, { about: 'port of the demo backend', fallback: 4000 }),
  TRUST_PROXY: list('address-range', { about: 'whose X-Forwarded-For names the client, beside this machine itself' }),
  DEMO_SIMULATOR: oneOf(['on', 'off'], { about: 'whether people walk', fallback: 'on' }),
  DEMO_PASSWORD: secret({
    about: 'password of the three demo accounts, required, at least 8 characters; `npm start` makes one up',
    fallback: null
  }),
  TOKEN_SECRET: secret({
    about: "signs app tokens, required, at least 32 characters; the gateway's API_SECRET",
    fallback: null
  }),
  DATABASE_URL: text('postgres-url', {
    about: 'PostgreSQL to keep everything in; without one an embedded database, in memory',
    fallback: null
  }),
  ...publisherSettings,
  REALTIME_CLIENT_URL: text('text', {
    about: "the relay's WebSocket address, as ws://localhost:8100/connection/websocket: negotiate answers with it",
    fallback: null
  }),
  REALTIME_HMAC_SECRET: secret({ about: "signs relay tokens, required; the relay's own", fallback: null }),
  LOG_LEVEL: oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], {
    about: 'how much is logged',
    fallback: 'info'
  })
}

const SHORTEST = { TOKEN_SECRET: 32, DEMO_PASSWORD: 8 } as const

export type DemoConfig = ReturnType<typeof demoConfig>

/** Reads the environment once. Throws `SettingsFault` with every fault there is. */
export const demoConfig = (environment: Environment) => {
  const faults: string[] = []
  const values = readSettings(demoSettings, environment, faults)
  const required = (
    name:
      | 'TOKEN_SECRET'
      | 'DEMO_PASSWORD'
      | 'REALTIME_PUBLISH_URL'
      | 'REALTIME_API_KEY'
      | 'REALTIME_CLIENT_URL'
      | 'REALTIME_HMAC_SECRET'
  ): string => {
    const value = values[name]
    if (value === null && !faults.some((fault) => fault.startsWith(name))) faults.push(`${name} is required`)
    return value ?? ''
  }
  const longEnough = (name: keyof typeof SHORTEST): string => {
    const value = required(name)
    if (value !== '' && value.length < SHORTEST[name])
      faults.push(`${name} must have at least ${SHORTEST[name]} characters`)
    return value
  }
  const config = {
    listen: { host: values.DEMO_BACKEND_HOST, port: values.DEMO_BACKEND_PORT },
    trustedProxies: values.TRUST_PROXY,
    simulator: values.DEMO_SIMULATOR === 'on',
    demoPassword: longEnough('DEMO_PASSWORD'),
    tokenSecret: longEnough('TOKEN_SECRET'),
    databaseUrl: values.DATABASE_URL,
    realtime: {
      publishUrl: required('REALTIME_PUBLISH_URL'),
      apiKey: required('REALTIME_API_KEY'),
      clientUrl: required('REALTIME_CLIENT_URL'),
      hmacSecret: required('REALTIME_HMAC_SECRET')
    },
    logLevel: values.LOG_LEVEL
  } as const
  if (config.realtime.clientUrl !== '' && !/^wss?:\/\/\S+$/.test(config.realtime.clientUrl)) {
    faults.push('REALTIME_CLIENT_URL must be an address such as ws://localhost:8100/connection/websocket')
  }
  if (faults.length > 0) throw new SettingsFault(faults)
  return config
}
