import type { FastifyInstance, FastifyReply } from 'fastify'
import type { BackendState } from '../health/backend.js'
import type { DatabaseHealth } from '../health/database.js'

export interface HealthParts {
  /** Null where no database is configured. */
  readonly database: Pick<DatabaseHealth, 'check'> | null
  readonly backend: () => Promise<BackendState>
  /** A gateway that is about to end still answers, but wants no new requests. */
  readonly isClosing?: () => boolean
}

/** For those who watch the gateway: whether it is up, whether it is of use, and whether the database answers. */
export const healthRoutes = (app: FastifyInstance, parts?: HealthParts): void => {
  // The process is up: it asks nobody, so that a failing neighbour never gets a gateway restarted.
  app.get('/api/health', async (_request, reply) => tell(reply, true, { status: 'ok' }))
  if (parts === undefined) return
  const { database, backend, isClosing = () => false } = parts

  app.get('/api/health/ready', async (_request, reply) => {
    if (isClosing()) return tell(reply, false, { status: 'closing' })
    const state = await backend()
    const ready = state.status === 'up'
    return tell(reply, ready, { status: ready ? 'ready' : 'unavailable', backend: state })
  })

  app.get('/api/health/database', async (_request, reply) => {
    if (database === null) return tell(reply, true, { status: 'not configured' })
    const state = await database.check()
    return tell(reply, state.status === 'up', state)
  })
}

/** A state is true only now: no cache may keep it. */
const tell = <Body extends object>(reply: FastifyReply, well: boolean, body: Body): Body => {
  reply.code(well ? 200 : 503).header('cache-control', 'no-store')
  return body
}
