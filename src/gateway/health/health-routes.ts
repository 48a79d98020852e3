import type { FastifyReply } from 'fastify'
import type { LocalHandler } from '../proxy/mount.js'
import type { BackendState } from './backend.js'
import type { DatabaseHealth } from './database.js'

export interface HealthParts {
  /** Null where no database is configured. */
  readonly database: Pick<DatabaseHealth, 'check'> | null
  readonly backend: () => Promise<BackendState>
}

/** For those who watch the gateway: whether it is up, whether it is of use, and whether the database answers. */
export const healthRoutes = ({ database, backend }: HealthParts): ReadonlyMap<string, LocalHandler> =>
  new Map<string, LocalHandler>([
    // The process is up: it asks nobody, so that a failing neighbour never gets a gateway restarted.
    ['GET /api/health', (_request, reply) => tell(reply, true, { status: 'ok' })],
    [
      'GET /api/health/ready',
      async (_request, reply) => {
        const state = await backend()
        const ready = state.status === 'up'
        return tell(reply, ready, { status: ready ? 'ready' : 'unavailable', backend: state })
      }
    ],
    [
      'GET /api/health/database',
      async (_request, reply) => {
        if (database === null) return tell(reply, true, { status: 'not configured' })
        const state = await database.check()
        return tell(reply, state.status === 'up', state)
      }
    ]
  ])

/** A state is true only now: no cache may keep it. */
const tell = (reply: FastifyReply, well: boolean, body: object): FastifyReply =>
  reply
    .code(well ? 200 : 503)
    .header('cache-control', 'no-store')
    .send(body)
