import { isUnder, RELAY_CONNECTION_PREFIX, RELAY_EMULATION_PATH } from '../access.js'
import { foldedPath } from '../http/folded-text.js'

/**
 * The paths that no row can have: sessions, sign-in, forward authentication, reports, health, metrics, API docs, the relay, and
 * the development routes.
 */
export const GATEWAY_PREFIXES: readonly string[] = [
  '/api/auth',
  '/api/health',
  '/api/docs',
  '/api/internal',
  '/api/dev-login',
  '/api/dev-user',
  '/api/ble/scan',
  '/api/ble/status',
  '/auth/oidc',
  '/auth/verify',
  '/csp-reports',
  '/metrics',
  '/dev-login',
  '/dev-user',
  '/ble/scan',
  '/ble/status',
  RELAY_CONNECTION_PREFIX,
  RELAY_EMULATION_PATH
]

/** The prefix that a path belongs to, also in another spelling; null for a path that is not the gateway's own. */
export const gatewayPrefixOf = (path: string): string | null => {
  const folded = foldedPath(path)
  return GATEWAY_PREFIXES.find((prefix) => isUnder(prefix, folded)) ?? null
}
