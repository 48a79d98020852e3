import type { Readable } from 'node:stream'
import httpProxy from '@fastify/http-proxy'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { SERVED_METHODS } from '../access.js'
import type { GatewayConfig } from '../config.js'
import type { Backend } from '../proxy/backend.js'
import { limitedBody } from '../proxy/body-limit.js'
import type { Forward } from '../proxy/forward.js'

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

    // The framework refuses a Content-Type that it cannot parse, which is the backend's to judge here. The forwarder reads
    // the headers of the raw request and sends on what stands there.
    scope.addHook('preParsing', (request, _reply, _payload, done) => {
      if (request.headers['content-type'] !== undefined) request.headers = { 'content-type': UNPARSED_TYPE }
      done()
    })

    await scope.register(httpProxy, {
      upstream: backend.origin,
      prefix: '/api',
      routes: ['/*'],
      httpMethods: [...SERVED_METHODS],
      // The parser above hands the body over; the library's own would do so without a limit.
      proxyPayloads: false,
      // An agent of its own, which opens no connection because nothing is sent with it. Else it takes the program's.
      undici: {},
      handler: (request, reply) => forward(request, reply, bodyOf(request))
    })
  })
}

const UNPARSED_TYPE = 'application/octet-stream'

/** OPTIONS asks without a token, so it may not hold a connection to the backend with a body that never ends. */
const bodyOf = ({ method, body }: FastifyRequest): Readable | null =>
  method === 'OPTIONS' ? null : ((body as Readable | undefined) ?? null)
