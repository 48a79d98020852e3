import type { FastifyInstance } from 'fastify'
import { isApiPath } from '../access.js'
import { Refusal } from '../errors.js'

/** Last: a backend that has stalled must not fill the gateway with requests that wait for it. */
export const limitInFlight = (app: FastifyInstance, maxInFlight: number): void => {
  let inFlight = 0

  app.addHook('onRequest', ({ path }, { raw: response }, done) => {
    if (!isApiPath(path) || isHealthPath(path)) return done()
    if (inFlight >= maxInFlight) return done(new Refusal('OVERLOADED', { headers: { 'retry-after': '1' } }))
    // A browser that left while the hooks before this one were at work has closed already, and will not do so again.
    if (response.closed) return done()
    inFlight += 1
    // Not in `onResponse`: that never comes for a browser that left before it had its answer.
    response.once('close', () => {
      inFlight -= 1
    })
    done()
  })
}

const isHealthPath = (path: string): boolean => path === '/api/health' || path.startsWith('/api/health/')
