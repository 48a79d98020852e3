import { setTimeout as delay } from 'node:timers/promises'
import { Client } from 'undici'
import { monotonicMs } from '../../shared/monotonic.js'
import { Refusal } from '../errors.js'
import { type Backend, backendRefusal } from '../proxy/backend.js'
import { type HealthState, keptCheck } from './kept-check.js'

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
      const late = delay(timeoutMs, undefined, over).then(() => Promise.reject(new Refusal('BACKEND_TIMEOUT')))
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
  return backendRefusal(error).code === 'BACKEND_TIMEOUT' ? 'timeout' : 'error'
}
