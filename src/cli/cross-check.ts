import type { GatewayConfig } from '../gateway/config.js'
import type { ListenAddress, RelayConfig } from '../relay/config/config.js'
import { originCheck } from '../relay/transport/admission.js'
import { type Environment, readSettings } from '../shared/env.js'
import { AddressSet } from '../shared/ip-address.js'
import { secret } from '../shared/setting-kinds.js'
import { portOf } from '../shared/url-port.js'
import type { CheckResult } from './check-result.js'

// Settings that a gateway and a relay must agree about if one environment configures both.

export const crossCheck = (gateway: GatewayConfig, relay: RelayConfig, environment: Environment): CheckResult => ({
  errors: portErrors(gateway, relay),
  warnings: [
    ...originWarnings(gateway, relay),
    ...addressWarnings('RELAY_UPSTREAM', gateway.relay?.url ?? null, relay.listen),
    ...addressWarnings('RELAY_API_URL', gateway.revocation?.relay?.url ?? null, apiListen(relay)),
    ...secretWarnings(environment)
  ]
})

const portErrors = ({ listen }: GatewayConfig, relay: RelayConfig): string[] =>
  listen.port !== 0 && listen.port === relay.listen.port && listen.host === relay.listen.host
    ? [`GATEWAY_PORT and RELAY_PORT must differ: both programs would listen at ${listen.host}:${listen.port}`]
    : []

/** The origins of pages that the gateway serves or accepts write requests from. */
const originWarnings = ({ csrf, relay: upstream }: GatewayConfig, { allowedOrigins }: RelayConfig): string[] => {
  const { publicOrigin } = csrf
  if (publicOrigin === null) return []
  const isAllowed = originCheck(allowedOrigins)
  // Through the gateway, the relay receives the Host that the browser used.
  const host = upstream === null ? undefined : new URL(publicOrigin).host
  return [publicOrigin, ...csrf.allowedOrigins]
    .filter((origin) => !isAllowed(origin, host))
    .map((origin) => `RELAY_ALLOWED_ORIGINS does not contain ${origin}: the relay rejects connections of its pages`)
}

/** The API has a listener of its own with `http_server.internal_port`, unless it is external. */
const apiListen = ({ listen, internalListen, api }: RelayConfig): ListenAddress =>
  internalListen === null || api.isExternal ? listen : internalListen

const LOOPBACK = new AddressSet(['loopback'])
const LOOPBACK_NAME = 'localhost'

/** Only for addresses of this machine: another one may forward a port. */
const addressWarnings = (setting: string, url: string | null, { port: listening }: ListenAddress): string[] => {
  if (url === null || listening === 0) return []
  const address = new URL(url)
  const host = address.hostname.replace(/^\[|\]$/g, '')
  if (host !== LOOPBACK_NAME && !LOOPBACK.has(host)) return []
  const used = portOf(address)
  return used === listening ? [] : [`${setting} has port ${used}, but the relay listens on port ${listening}`]
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
