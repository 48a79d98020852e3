import type { FastifyInstance } from 'fastify'
import { isApiPath } from '../access.js'
import { Refusal } from '../errors.js'
import { onceClosed } from '../response-close.js'

export interface InFlight {
  readonly count: number
}

/** Last: a backend that has stalled must not fill the gateway with requests that wait for it. */
export const limitInFlight = (app: FastifyInstance, maxInFlight: number): InFlight => {
  let inFlight = 0

  app.addHook('onRequest', ({ path }, { raw: response }, done) => {
    if (!isApiPath(path) || isHealthPath(path)) return done()
    if (inFlight >= maxInFlight) return done(new Refusal('OVERLOADED', { headers: { 'retry-after': '1' } }))
    inFlight += 1
    onceClosed(response, leave)
    done()
  })

  const leave = (): void => {
    inFlight -= 1
  }

  return {
    get count() {
      return inFlight
    }
  }
}

const isHealthPath = (path: string): boolean => path === '/api/health' || path.startsWith('/api/health/')
