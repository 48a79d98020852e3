import { setTimeout as delay } from 'node:timers/promises'
import { Client } from 'undici'
import { errorCode } from '../../shared/error-code.js'
import { monotonicMs } from '../../shared/monotonic.js'
import { GatewayError } from '../errors.js'
import { type Backend, toBackendError } from '../proxy/backend-pool.js'
import { cachedCheck, type HealthState } from './cached-check.js'

export type BackendFailure = 'refused' | 'timeout' | 'error'
export type BackendState = HealthState<BackendFailure>

export interface ReachableOptions {
  /** The path of the gateway that is requested from the backend. */
  readonly path?: string | undefined
  /** For connecting and the response together. */
  readonly timeoutMs?: number
  readonly now?: () => number
}

const TIMEOUT_MS = 2_000

/**
 * A check whether the backend responds. Every status below 500 counts as up, also 401 and 404.
 *
 * Each check uses its own connection: the pool may be exhausted, and then the check would wait behind requests.
 */
export const backendReachable = (
  { origin, pathOf }: Pick<Backend, 'origin' | 'pathOf'>,
  { path = '/api/health', timeoutMs = TIMEOUT_MS, now = monotonicMs }: ReachableOptions = {}
): (() => Promise<BackendState>) =>
  cachedCheck({
    probe: async () => {
      const client = new Client(origin, { connect: { rejectUnauthorized: true, timeout: timeoutMs } })
      // Undici observes a signal only after connecting. The check must end in time in any case.
      const timer = new AbortController()
      const timeout = delay(timeoutMs, undefined, timer).then(() => Promise.reject(new GatewayError('BACKEND_TIMEOUT')))
      try {
        await Promise.race([requestHealth(client, pathOf(path)), timeout])
      } finally {
        timer.abort()
        void client.destroy()
      }
    },
    reasonOf,
    now
  })

const requestHealth = async (client: Client, path: string): Promise<void> => {
  const { statusCode, body } = await client.request({ method: 'GET', path })
  await body.dump({ limit: BODY_BYTES })
  if (statusCode >= 500) throw new Error('the response is a server error')
}

/** A longer body is not read completely: the connection is closed instead. */
const BODY_BYTES = 64 * 1024

const reasonOf = (error: unknown): BackendFailure => {
  if (errorCode(error) === 'ECONNREFUSED') return 'refused'
  return toBackendError(error).code === 'BACKEND_TIMEOUT' ? 'timeout' : 'error'
}
