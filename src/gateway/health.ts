import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyReply } from 'fastify'
import { Client } from 'undici'
import { monotonicMs } from '../shared/monotonic.js'
import { GatewayError } from './errors.js'
import type { DatabaseHealth } from './health-database.js'
import { type Backend, toBackendError } from './proxy/backend.js'
import type { LocalHandler } from './routes/mount.js'

/** What a check found out. The reason is one word of a closed set: nothing that was asked can put text of its own in it. */
export type HealthState<Reason extends string> =
  | { readonly status: 'up'; readonly latencyMs: number }
  | { readonly status: 'down'; readonly reason: Reason }

export interface KeptCheckOptions<Reason extends string> {
  /** Resolves when all is well; its error says what is not. */
  readonly ask: () => Promise<void>
  readonly reasonOf: (error: unknown) => Reason
  readonly now: () => number
}

const KEPT_MS = 1_000

/** A check that never throws, and that asks once at a time and once a second at most, however many want to know. */
export const keptCheck = <Reason extends string>({
  ask,
  reasonOf,
  now
}: KeptCheckOptions<Reason>): (() => Promise<HealthState<Reason>>) => {
  let inFlight: Promise<HealthState<Reason>> | null = null
  let kept: { readonly state: HealthState<Reason>; readonly until: number } | null = null

  const check = async (): Promise<HealthState<Reason>> => {
    const startedAt = now()
    try {
      await ask()
      return { status: 'up', latencyMs: Math.round(now() - startedAt) }
    } catch (error) {
      return { status: 'down', reason: reasonOf(error) }
    }
  }

  return async () => {
    if (kept !== null && now() < kept.until) return kept.state
    inFlight ??= check().then((state) => {
      kept = { state, until: now() + KEPT_MS }
      inFlight = null
      return state
    })
    return inFlight
  }
}

export type BackendFault = 'refused' | 'timeout' | 'error'
export type BackendState = HealthState<BackendFault>

export interface BackendReachableOptions {
  /** For connecting and asking together. */
  readonly timeoutMs?: number
  readonly now?: () => number
}

const TIMEOUT_MS = 2_000

/**
 * A check whether the backend answers. What it answers matters little: one that does not have the path, or wants a token
 * for it, is there all the same.
 *
 * Every check makes a connection of its own and ends it: where all that requests share are taken, it would wait with the
 * requests, and whoever asks wants to know at that very moment.
 */
export const backendReachable = (
  { origin, pathPrefix }: Pick<Backend, 'origin' | 'pathPrefix'>,
  { timeoutMs = TIMEOUT_MS, now = monotonicMs }: BackendReachableOptions = {}
): (() => Promise<BackendState>) =>
  keptCheck({
    ask: async () => {
      const client = new Client(origin, { connect: { rejectUnauthorized: true, timeout: timeoutMs } })
      // The client hears a signal only once it is connected, and this has to be told in time whatever it does.
      const over = new AbortController()
      const late = delay(timeoutMs, undefined, over).then(() => Promise.reject(new GatewayError('BACKEND_TIMEOUT')))
      try {
        await Promise.race([ask(client, `${pathPrefix}/api/health`), late])
      } finally {
        over.abort()
        void client.destroy()
      }
    },
    reasonOf,
    now
  })

const ask = async (client: Client, path: string): Promise<void> => {
  const { statusCode, body } = await client.request({ method: 'GET', path })
  await body.dump({ limit: BODY_BYTES })
  if (statusCode >= 500) throw new Error('the backend says that it fails')
}

/** What is longer is not read to its end: the connection is closed instead. */
const BODY_BYTES = 64 * 1024

const reasonOf = (error: unknown): BackendFault => {
  if ((error as { code?: string }).code === 'ECONNREFUSED') return 'refused'
  return toBackendError(error).code === 'BACKEND_TIMEOUT' ? 'timeout' : 'error'
}

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
