import { readFileSync } from 'node:fs'
import { gatewaySettings } from '../../gateway/settings.js'
import { relayConfig } from '../../relay/config/config.js'
import { relaySettings } from '../../relay/config/settings.js'
import { type Environment, isGiven, readSettings, SettingsError } from '../../shared/env.js'
import { integer } from '../../shared/setting-kinds.js'
import { loopbackPort } from '../loopback-port.js'
import { freePortFrom } from './ports.js'

/** The parts of a development run besides the gateway and the relay. */
export interface DevelopmentParts {
  readonly hasBackend: boolean
  readonly hasWeb: boolean
}

export interface DevelopmentSettings {
  /** The given environment, with the variables that it does not have. */
  readonly env: Environment
  readonly webPort: number
  /** One line for each port that is not the usual one. */
  readonly notes: readonly string[]
}

const port = integer(0, 65_535, { about: '', fallback: 0 })
const { GATEWAY_PORT } = gatewaySettings
const { RELAY_PORT } = relaySettings
const USUAL = { gateway: GATEWAY_PORT.fallback, relay: RELAY_PORT.fallback, backend: 4000, 'web app': 5173 } as const

/**
 * Adds the settings of a development run: ports that are free, the addresses that follow from them, and defaults of
 * development. Given settings win.
 */
export const developmentSettings = async (
  given: Environment,
  { hasBackend, hasWeb }: DevelopmentParts
): Promise<DevelopmentSettings> => {
  const notes: string[] = []
  const taken = new Set<number>()
  const choose = async (name: keyof typeof USUAL, givenPort: number | null): Promise<number> => {
    const usual = USUAL[name]
    const chosen = givenPort ?? (await freePortFrom(usual, taken))
    taken.add(chosen)
    if (givenPort === null && chosen !== usual)
      notes.push(`Port ${usual} is in use, so the port of the ${name} is ${chosen}.`)
    return chosen
  }
  const givenPorts = portsOf(given)
  // Given ports first, so that none of them is chosen for another part.
  for (const givenPort of Object.values(givenPorts)) if (givenPort !== null) taken.add(givenPort)
  const gateway = await choose('gateway', givenPorts.gateway)
  const relay = await choose('relay', givenPorts.relay)
  const backend = hasBackend ? await choose('backend', givenPorts.backend) : givenPorts.backend
  const webPort = hasWeb ? await choose('web app', null) : 0
  const isHttps = given.PUBLIC_URL?.startsWith('https:') === true
  const derived: Environment = {
    NODE_ENV: 'development',
    GATEWAY_PORT: String(gateway),
    RELAY_PORT: String(relay),
    ...(backend !== null && { PORT: String(backend), BACKEND_URL: `http://127.0.0.1:${backend}` }),
    RELAY_UPSTREAM: `http://127.0.0.1:${relay}`,
    REALTIME_PUBLISH_URL: `http://127.0.0.1:${relayApiPort(given) ?? relay}/api`,
    REALTIME_CLIENT_URL: `ws://localhost:${gateway}/connection/websocket`,
    // Browsers store Secure cookies of plain HTTP on this machine only, and not all of them do.
    ...(!isHttps && { COOKIE_SECURE: 'false' }),
    LOGIN_LIMIT_MAX: '100'
  }
  const missing = Object.entries(derived).filter(([name]) => !isGiven(name, given))
  return { env: { ...given, ...Object.fromEntries(missing) }, webPort, notes }
}

/** The ports that the settings fix; null for those that may be chosen. */
const portsOf = (given: Environment) => {
  const values = readSettings({ GATEWAY_PORT: port, RELAY_PORT: port, PORT: port }, given, [])
  return {
    // Behind a proxy, PUBLIC_URL is the address of the proxy.
    gateway: values.GATEWAY_PORT || (isGiven('TRUST_PROXY', given) ? null : loopbackPort(given.PUBLIC_URL)),
    relay: values.RELAY_PORT || relayFilePort(given) || loopbackPort(given.RELAY_UPSTREAM),
    backend: loopbackPort(given.BACKEND_URL) ?? (values.PORT || null)
  }
}

/** The port in the file of the relay; null for the default, which another one may replace. */
const relayFilePort = (given: Environment): number | null => {
  const listening = relayOf(given)?.listen.port ?? USUAL.relay
  return listening === USUAL.relay ? null : listening
}

/** The server API has a port of its own with `http_server.internal_port`, unless it is external. */
const relayApiPort = (given: Environment): number | null => {
  const relay = relayOf(given)
  return relay === null || relay.api.isExternal ? null : (relay.internalListen?.port ?? null)
}

/** Null for invalid settings, which are reported later. */
const relayOf = (given: Environment) => {
  try {
    return relayConfig({ ...given, NODE_ENV: given.NODE_ENV || 'development' }, (path) => readFileSync(path, 'utf8'))
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    return null
  }
}
