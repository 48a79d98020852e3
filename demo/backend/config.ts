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

const SHORTEST: Readonly<Record<string, number>> = { TOKEN_SECRET: 32, DEMO_PASSWORD: 8 }

export type DemoConfig = ReturnType<typeof demoConfig>

/** Reads the environment once. Throws `SettingsFault` with every fault there is. */
export const demoConfig = (environment: Environment) => {
  const faults: string[] = []
  const values = readSettings(demoSettings, environment, faults)
  for (const [name, value] of Object.entries(values)) {
    const { [name]: least = 0 } = SHORTEST
    // Of what has no default, only the database is not needed.
    const isMissing = value === null && name !== 'DATABASE_URL' && !faults.some((fault) => fault.startsWith(name))
    if (isMissing) faults.push(`${name} is required`)
    if (typeof value === 'string' && value.length < least) faults.push(`${name} must have at least ${least} characters`)
  }
  const clientUrl = values.REALTIME_CLIENT_URL ?? ''
  if (clientUrl !== '' && !/^wss?:\/\/\S+$/.test(clientUrl))
    faults.push('REALTIME_CLIENT_URL must be an address such as ws://localhost:8100/connection/websocket')
  if (faults.length > 0) throw new SettingsFault(faults)
  return {
    listen: { host: values.DEMO_BACKEND_HOST, port: values.DEMO_BACKEND_PORT },
    trustedProxies: values.TRUST_PROXY,
    simulator: values.DEMO_SIMULATOR === 'on',
    demoPassword: values.DEMO_PASSWORD ?? '',
    tokenSecret: values.TOKEN_SECRET ?? '',
    databaseUrl: values.DATABASE_URL,
    publish: { url: values.REALTIME_PUBLISH_URL ?? '', apiKey: values.REALTIME_API_KEY ?? '' },
    relay: { clientUrl, secret: values.REALTIME_HMAC_SECRET ?? '' },
    logLevel: values.LOG_LEVEL
  }
}
