import type { GatewayConfig } from '../gateway/config.js'
import type { ListenAddress, RelayConfig } from '../relay/config/config.js'
import { originCheck } from '../relay/transport/admission.js'
import { type Environment, readSettings } from '../shared/env.js'
import { secret } from '../shared/setting-kinds.js'
import type { CheckResult } from './check-result.js'
import { loopbackPort } from './loopback-port.js'

// Settings that a gateway and a relay must agree about if one environment configures both.

export const crossCheck = (gateway: GatewayConfig, relay: RelayConfig, environment: Environment): CheckResult => ({
  errors: portErrors(gateway, relay),
  warnings: [
    ...originWarnings(gateway, relay),
    ...portWarnings(gateway, relay, environment),
    ...secretWarnings(environment)
  ]
})

const portErrors = ({ listen }: GatewayConfig, relay: RelayConfig): string[] =>
  listen.port !== 0 && listen.port === relay.listen.port && listen.host === relay.listen.host
    ? [`GATEWAY_PORT and RELAY_PORT must differ: both programs would listen at ${listen.host}:${listen.port}`]
    : []

/** The origins of pages that the gateway serves or accepts write requests from. */
const originWarnings = (
  { csrf, relay: upstream }: GatewayConfig,
  { allowedOrigins, allowsLoopback }: RelayConfig
): string[] => {
  const { publicOrigin } = csrf
  if (publicOrigin === null) return []
  const isAllowed = originCheck(allowedOrigins, allowsLoopback)
  // Through the gateway, the relay receives the Host that the browser used.
  const host = upstream === null ? undefined : new URL(publicOrigin).host
  return [publicOrigin, ...csrf.allowedOrigins]
    .filter((origin) => !isAllowed(origin, host))
    .map((origin) => `RELAY_ALLOWED_ORIGINS does not contain ${origin}: the relay rejects connections of its pages`)
}

interface Listener extends Pick<ListenAddress, 'port'> {
  readonly name: string
}

/** Of both programs, and of a backend in the same environment: REALTIME_… and PORT are variables of backends by convention. */
const portWarnings = (gateway: GatewayConfig, relay: RelayConfig, environment: Environment): string[] => {
  const [atGateway, atRelay] = [
    { name: 'gateway', port: gateway.listen.port },
    { name: 'relay', port: relay.listen.port }
  ]
  const atApi = { name: 'relay', port: apiListen(relay).port }
  const backendPort = Number(environment.PORT)
  return [
    // Behind a proxy, PUBLIC_URL is the address of the proxy.
    ...(gateway.trustedProxies.length > 0 ? [] : addressWarnings('PUBLIC_URL', gateway.csrf.publicOrigin, [atGateway])),
    ...(backendPort > 0
      ? addressWarnings('BACKEND_URL', environment.BACKEND_URL, [{ name: 'backend', port: backendPort }])
      : []),
    ...addressWarnings('RELAY_UPSTREAM', gateway.relay?.url, [atRelay]),
    ...addressWarnings('RELAY_API_URL', gateway.revocation?.relay?.url, [atApi]),
    ...addressWarnings('REALTIME_PUBLISH_URL', environment.REALTIME_PUBLISH_URL, [atApi]),
    ...addressWarnings(
      'REALTIME_CLIENT_URL',
      environment.REALTIME_CLIENT_URL,
      clientListeners(gateway, atGateway, atRelay)
    ),
    ...gateway.headers.connectHosts
      .filter((host) => host.startsWith('ws:'))
      .flatMap((host) => addressWarnings('CSP_CONNECT_HOSTS', host, clientListeners(gateway, atGateway, atRelay)))
  ]
}

/** Browsers connect to the relay, or to a gateway that passes their connections on to it. */
const clientListeners = ({ relay }: GatewayConfig, atGateway: Listener, atRelay: Listener): readonly Listener[] =>
  relay === null ? [atRelay] : [atGateway, atRelay]

/** The API has a listener of its own with `http_server.internal_port`, unless it is external. */
const apiListen = ({ listen, internalListen, api }: RelayConfig): ListenAddress =>
  internalListen === null || api.isExternal ? listen : internalListen

/** Only for addresses of this machine: another one may forward a port. */
const addressWarnings = (setting: string, url: string | null | undefined, listeners: readonly Listener[]): string[] => {
  const used = loopbackPort(url)
  if (used === null || listeners.some(({ port }) => port === 0 || port === used)) return []
  const listening = listeners.map(({ name, port }) => `${name} listens on port ${port}`).join(' and ')
  return [`${setting} has port ${used}, but the ${listening}`]
}

const secrets = {
  API_SECRET: secret({ about: '', fallback: null }),
  REALTIME_HMAC_SECRET: secret({ about: '', fallback: null })
}

const secretWarnings = (environment: Environment): string[] => {
  const { API_SECRET, REALTIME_HMAC_SECRET } = readSettings(secrets, environment, [])
  return API_SECRET !== null && API_SECRET === REALTIME_HMAC_SECRET
    ? [
        'API_SECRET and REALTIME_HMAC_SECRET are equal: a token for the relay, which pages can read, is valid as an app token too. Use two secrets'
      ]
    : []
}
