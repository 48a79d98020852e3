import type { Readable } from 'node:stream'
import httpProxy from '@fastify/http-proxy'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { MUTATING_METHODS, READING_METHODS } from '../access.js'
import type { GatewayConfig } from '../config.js'
import type { Backend } from '../proxy/backend.js'
import { limitedBody } from '../proxy/body-limit.js'
import type { Forward } from '../proxy/forward.js'

export const FORWARDED_METHODS: readonly string[] = [...READING_METHODS, ...MUTATING_METHODS].toSorted()

/**
 * Every `/api/` path that has no route of its own goes to the backend unchanged, its body streamed. The library finds these
 * requests; what it does with them is left to the forwarder, so that no answer depends on which way a request took. By
 * itself it would parse the path once more, repeat reads that are answered 503, and let the backend work on for a browser
 * that has gone.
 */
export const catchAll = (app: FastifyInstance, config: GatewayConfig, backend: Backend, forward: Forward): void => {
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', async (request: FastifyRequest, body: Readable) =>
      limitedBody(request, body, config.limits.uploadBytes)
    )

    await scope.register(httpProxy, {
      upstream: backend.origin,
      prefix: '/api',
      routes: ['/*'],
      httpMethods: [...FORWARDED_METHODS],
      // The parser above hands the body over; the library's own would do so without a limit.
      proxyPayloads: false,
      // An agent of its own, which opens no connection because nothing is sent with it. Else it takes the program's.
      undici: {},
      handler: (request, reply) => forward(request, reply, bodyOf(request))
    })
  })
}

/** OPTIONS asks without a token, so it may not hold a connection to the backend with a body that never ends. */
const bodyOf = ({ method, body }: FastifyRequest): Readable | null =>
  method === 'OPTIONS' ? null : ((body as Readable | undefined) ?? null)
