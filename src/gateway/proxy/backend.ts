import { Pool } from 'undici'
import type { GatewayConfig } from '../config.js'
import { Refusal } from '../errors.js'

const CONNECT_TIMEOUT_MS = 2_000

// Shorter than servers commonly keep an idle connection: the side that closes first must be ours, or a request meets a
// connection that is just being closed.
const IDLE_MS = 4_000

/** The connections to the backend: one pool for everything that is forwarded. */
export const openBackendPool = ({ url, timeoutMs, connections }: GatewayConfig['backend']): Pool =>
  new Pool(new URL(url).origin, {
    connections,
    // One request at a time per connection: a slow answer must hold up no other.
    pipelining: 1,
    keepAliveTimeout: IDLE_MS,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    // Verifying is the default of TLS and stays so, whatever a proxy library passes by itself.
    connect: { timeout: Math.min(CONNECT_TIMEOUT_MS, timeoutMs), rejectUnauthorized: true }
  })

/** What stands in front of the gateway's path at the backend; empty for most. */
export const backendPathPrefix = ({ url }: GatewayConfig['backend']): string =>
  new URL(url).pathname.replace(/\/+$/, '')

const TIMEOUT_CODES: ReadonlySet<string> = new Set([
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_CONNECT_TIMEOUT'
])

/** What went wrong on the way to the backend, as the refusal that the browser gets. */
export const backendRefusal = (error: unknown): Refusal => {
  if (error instanceof Refusal) return error
  const code = (error as { code?: string } | null)?.code ?? ''
  return new Refusal(TIMEOUT_CODES.has(code) ? 'BACKEND_TIMEOUT' : 'BACKEND_UNREACHABLE', { cause: error })
}
