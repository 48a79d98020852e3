import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyReply } from 'fastify'
import { Client } from 'undici'
import { errorCode } from '../shared/error-code.js'
import { monotonicMs } from '../shared/monotonic.js'
import { GatewayError } from './errors.js'
import type { DatabaseHealth } from './health-database.js'
import { type Backend, toBackendError } from './proxy/backend-pool.js'
import type { LocalHandler } from './routes/mount-routes.js'

/** The result of a check. The reason is one of a closed set, so that no text of the checked service is published. */
export type HealthState<Reason extends string> =
  | { readonly status: 'up'; readonly latencyMs: number }
  | { readonly status: 'down'; readonly reason: Reason }

export interface CachedCheckOptions<Reason extends string> {
  /** Rejects if the service is down. */
  readonly probe: () => Promise<void>
  readonly reasonOf: (error: unknown) => Reason
  readonly now: () => number
}

const CACHE_MS = 1_000

/** A check that never rejects. It probes at most once per second, and concurrent callers share one probe. */
export const cachedCheck = <Reason extends string>({
  probe,
  reasonOf,
  now
}: CachedCheckOptions<Reason>): (() => Promise<HealthState<Reason>>) => {
  let inFlight: Promise<HealthState<Reason>> | null = null
  let cached: { readonly state: HealthState<Reason>; readonly until: number } | null = null

  const check = async (): Promise<HealthState<Reason>> => {
    const startedAt = now()
    try {
      await probe()
      return { status: 'up', latencyMs: Math.round(now() - startedAt) }
    } catch (error) {
      return { status: 'down', reason: reasonOf(error) }
    }
  }

  return async () => {
    if (cached !== null && now() < cached.until) return cached.state
    inFlight ??= check().then((state) => {
      cached = { state, until: now() + CACHE_MS }
      inFlight = null
      return state
    })
    return inFlight
  }
}

export type BackendFailure = 'refused' | 'timeout' | 'error'
export type BackendState = HealthState<BackendFailure>

export interface ReachableOptions {
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
  { timeoutMs = TIMEOUT_MS, now = monotonicMs }: ReachableOptions = {}
): (() => Promise<BackendState>) =>
  cachedCheck({
    probe: async () => {
      const client = new Client(origin, { connect: { rejectUnauthorized: true, timeout: timeoutMs } })
      // Undici observes a signal only after connecting. The check must end in time in any case.
      const timer = new AbortController()
      const timeout = delay(timeoutMs, undefined, timer).then(() => Promise.reject(new GatewayError('BACKEND_TIMEOUT')))
      try {
        await Promise.race([requestHealth(client, pathOf('/api/health')), timeout])
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

export interface HealthParts {
  /** Load balancers must send no further requests. */
  readonly isStopping: () => boolean
  /** Null where no database is configured. */
  readonly database: Pick<DatabaseHealth, 'check'> | null
  readonly backend: () => Promise<BackendState>
}

/** Health routes: the process, the backend, and the database. */
export const healthRoutes = ({ isStopping, database, backend }: HealthParts): ReadonlyMap<string, LocalHandler> =>
  new Map<string, LocalHandler>([
    // Without dependencies: an outage of the backend must not restart the gateway.
    [
      'GET /api/health',
      (_request, reply) => (isStopping() ? sendState(reply, false, STOPPING) : sendState(reply, true, { status: 'ok' }))
    ],
    [
      'GET /api/health/ready',
      async (_request, reply) => {
        if (isStopping()) return sendState(reply, false, STOPPING)
        const state = await backend()
        const ready = state.status === 'up'
        return sendState(reply, ready, { status: ready ? 'ready' : 'unavailable', backend: state })
      }
    ],
    [
      'GET /api/health/database',
      async (_request, reply) => {
        if (database === null) return sendState(reply, true, { status: 'not configured' })
        const state = await database.check()
        return sendState(reply, state.status === 'up', state)
      }
    ]
  ])

const STOPPING = { status: 'stopping' }

/** Not cacheable. */
const sendState = (reply: FastifyReply, isUp: boolean, body: object): FastifyReply =>
  reply
    .code(isUp ? 200 : 503)
    .header('cache-control', 'no-store')
    .send(body)
