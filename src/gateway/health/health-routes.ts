import type { FastifyReply } from 'fastify'
import type { LocalHandler } from '../routes/mount-routes.js'
import type { BackendState } from './backend-health.js'
import type { DatabaseHealth } from './database-health.js'

export interface HealthOptions {
  /** Load balancers must send no further requests. */
  readonly isStopping: () => boolean
  /** Null where no database is configured. */
  readonly database: Pick<DatabaseHealth, 'check'> | null
  readonly backend: () => Promise<BackendState>
}

/** Health routes: the process, the backend, and the database. */
export const healthRoutes = ({ isStopping, database, backend }: HealthOptions): ReadonlyMap<string, LocalHandler> =>
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
