import type { FastifyInstance } from 'fastify'
import { isApiPath } from '../access.js'
import { Refusal } from '../errors.js'

/** Last: a backend that has stalled must not fill the gateway with requests that wait for it. */
export const limitInFlight = (app: FastifyInstance, maxInFlight: number): void => {
  const counted = new WeakSet<object>()
  let inFlight = 0

  app.addHook('onRequest', (request, _reply, done) => {
    if (!isApiPath(request.path) || request.path.startsWith('/api/health')) return done()
    if (inFlight >= maxInFlight) return done(new Refusal('OVERLOADED', { headers: { 'retry-after': '1' } }))
    inFlight += 1
    counted.add(request)
    done()
  })

  app.addHook('onResponse', (request, _reply, done) => {
    if (counted.delete(request)) inFlight -= 1
    done()
  })
}
