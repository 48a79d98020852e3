import type { FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError } from '../errors.js'
import type { LocalHandler } from '../routes/mount-routes.js'
import { DEFAULT_UPSTREAM } from '../upstreams/upstream-row.js'
import type { BackendState } from './backend-health.js'
import type { DatabaseHealth } from './database-health.js'

export interface HealthOptions {
  /** Load balancers must send no further requests. */
  readonly isStopping: () => boolean
  /** Null where no database is configured. */
  readonly database: Pick<DatabaseHealth, 'check'> | null
  readonly backend: CheckBackend
  /** The backends of rows, by name. */
  readonly upstreams: ReadonlyMap<string, CheckBackend>
}

type CheckBackend = () => Promise<BackendState>

/** Health routes: the process, the backend, and the database. */
export const healthRoutes = (options: HealthOptions): ReadonlyMap<string, LocalHandler> => {
  const { isStopping, database } = options
  return new Map<string, LocalHandler>([
    // Without dependencies: an outage of the backend must not restart the gateway.
    [
      'GET /api/health',
      (_request, reply) => (isStopping() ? sendState(reply, false, STOPPING) : sendState(reply, true, { status: 'ok' }))
    ],
    [
      'GET /api/health/ready',
      async (request, reply) => {
        if (isStopping()) return sendState(reply, false, STOPPING)
        const state = await selectedCheck(request, options)()
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
}

/**
 * The backend that `?upstream=` names, by default that of `BACKEND_URL`. Only one: a row that hangs must not take the whole
 * gateway out of service.
 */
const selectedCheck = ({ raw }: FastifyRequest, { backend, upstreams }: HealthOptions): CheckBackend => {
  const name = new URL(raw.url ?? '', 'http://host').searchParams.get('upstream')
  const check = name === null || name === DEFAULT_UPSTREAM ? backend : upstreams.get(name)
  if (check === undefined) throw new GatewayError('NOT_FOUND')
  return check
}

const STOPPING = { status: 'stopping' }

/** Not cacheable. */
const sendState = (reply: FastifyReply, isUp: boolean, body: object): FastifyReply =>
  reply
    .code(isUp ? 200 : 503)
    .header('cache-control', 'no-store')
    .send(body)
