import { EventEmitter } from 'node:events'
import type { Readable } from 'node:stream'
import httpProxy from '@fastify/http-proxy'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Dispatcher, Pool } from 'undici'
import type { GatewayConfig } from '../config.js'
import { backendPathPrefix, backendRefusal } from '../proxy/backend.js'
import { limitedBody } from '../proxy/body-limit.js'
import { backendRequestHeaders, browserResponseHeaders } from '../proxy/headers.js'

export const FORWARDED_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const

/** Every `/api/` path that has no route of its own goes to the backend unchanged, its body streamed. */
export const catchAll = async (app: FastifyInstance, config: GatewayConfig, pool: Pool): Promise<void> => {
  const { origin } = new URL(config.backend.url)

  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', async (request: FastifyRequest, body: Readable) =>
      limitedBody(request, body, config.limits.uploadBytes)
    )

    await scope.register(httpProxy, {
      upstream: origin,
      prefix: '/api',
      routes: ['/*'],
      httpMethods: [...FORWARDED_METHODS],
      // The parser above hands the body over; the library's own would do so without a limit.
      proxyPayloads: false,
      internalRewriteLocationHeader: false,
      disableRequestLogging: true,
      undici: checkedRequests(pool, backendPathPrefix(config.backend)) as unknown as Dispatcher,
      replyOptions: {
        // Unless it is told a delay, the library repeats a read up to ten times while the backend answers 503.
        retryDelay: () => null,
        rewriteHeaders: (headers) => browserResponseHeaders(headers, origin),
        onError: (reply, { error }) => void reply.send(backendRefusal(error.cause ?? error))
      },
      handler: (request, reply, destination, options) =>
        reply.from(destination, {
          ...options,
          rewriteRequestHeaders: () => ({ ...backendRequestHeaders(request, config.publicHost), [ANSWERED_BY]: reply })
        })
    })
  })
}

/** How the reply travels through a library that hands on nothing but the headers. */
const ANSWERED_BY = Symbol('answered by')

/**
 * The pool as the library sees it. Two things it gets wrong are put right here: it parses the path once more, where what
 * goes out must be the very text that was checked; and it lets the backend work on when the browser has gone.
 */
const checkedRequests = (pool: Pool, pathPrefix: string) => ({
  request: (
    options: Dispatcher.RequestOptions,
    callback: (error: Error | null, data: Dispatcher.ResponseData) => void
  ): void => {
    const { request, raw: response } = (options.headers as unknown as { [ANSWERED_BY]: FastifyReply })[ANSWERED_BY]
    // Undici takes an emitter in place of an AbortSignal, at a fraction of its cost.
    const signal = new EventEmitter()
    response.once('close', () => {
      if (!response.writableFinished) signal.emit('abort')
    })
    pool.request({ ...options, path: `${pathPrefix}${request.raw.url}`, signal }, callback)
  }
})
