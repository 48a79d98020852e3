import type { Pool } from 'undici'
import { type HealthState, keptCheck, monotonicMs } from './kept-check.js'

export type BackendFault = 'refused' | 'timeout' | 'error'
export type BackendState = HealthState<BackendFault>

export interface BackendReachableOptions {
  readonly timeoutMs?: number
  readonly now?: () => number
}

const TIMEOUT_MS = 2_000

/**
 * A check whether the backend answers, on the connections that requests take too. What it answers matters little: one
 * that does not have the path, or wants a token for it, is there all the same.
 */
export const backendReachable = (
  pool: Pool,
  pathPrefix: string,
  { timeoutMs = TIMEOUT_MS, now = monotonicMs }: BackendReachableOptions = {}
): (() => Promise<BackendState>) =>
  keptCheck({
    ask: async () => {
      // The pool's own limits are those of a long request.
      const signal = AbortSignal.timeout(timeoutMs)
      const { statusCode, body } = await pool.request({ method: 'GET', path: `${pathPrefix}/api/health`, signal })
      await body.dump({ limit: BODY_BYTES, signal })
      if (statusCode >= 500) throw new Error('the backend says that it fails')
    },
    reasonOf,
    now
  })

/** What is longer is not read to its end: the connection is closed instead. */
const BODY_BYTES = 64 * 1024

const TIMEOUTS: ReadonlySet<string> = new Set([
  'TimeoutError',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'ETIMEDOUT'
])

const reasonOf = (error: unknown): BackendFault => {
  const { code = '', name = '' } = error as { code?: string; name?: string }
  if (code === 'ECONNREFUSED') return 'refused'
  return TIMEOUTS.has(code) || TIMEOUTS.has(name) ? 'timeout' : 'error'
}
