import { EventEmitter } from 'node:events'
import type { Readable } from 'node:stream'
import httpProxy from '@fastify/http-proxy'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Dispatcher } from 'undici'
import type { GatewayConfig } from '../config.js'
import { type Backend, backendRefusal, mayRepeat } from '../proxy/backend.js'
import { limitedBody } from '../proxy/body-limit.js'
import { backendRequestHeaders, browserResponseHeaders, headersObject } from '../proxy/headers.js'

export const FORWARDED_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const

/** Every `/api/` path that has no route of its own goes to the backend unchanged, its body streamed. */
export const catchAll = (app: FastifyInstance, config: GatewayConfig, backend: Backend): void => {
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
      internalRewriteLocationHeader: false,
      disableRequestLogging: true,
      undici: checkedRequests(backend) as unknown as Dispatcher,
      replyOptions: {
        // Unless it is told a delay, the library repeats a read up to ten times while the backend answers 503.
        retryDelay: ({ err, req, attempt }) => (err && mayRepeat(req.method, err, attempt) ? 1 : null),
        onError: (reply, { error }) => {
          // Nobody is there any more to tell.
          if (!reply.raw.closed) reply.send(backendRefusal(error.cause ?? error))
        }
      },
      handler: (request, reply, destination, options) =>
        reply.from(destination, {
          ...options,
          rewriteRequestHeaders: () => ({ ...backendRequestHeaders(request, config.publicHost), [ANSWERED_BY]: reply }),
          onResponse: (_request, _reply, response) => passOn(reply, response as unknown as { stream: Readable })
        })
    })
  })
}

/** How the reply travels through a library that hands on nothing but the headers. */
const ANSWERED_BY = Symbol('answered by')

/**
 * The pool as the library sees it. What it gets wrong is put right here: it parses the path once more, where what goes out
 * must be the very text that was checked; it lets the backend work on when the browser has gone; and it reads headers as
 * another alphabet than the one that they are written in.
 */
const checkedRequests = ({ pool, pathPrefix, origin }: Backend) => ({
  request: (
    options: Dispatcher.RequestOptions,
    callback: (error: Error | null, data: Dispatcher.ResponseData) => void
  ): void => {
    const reply = (options.headers as unknown as { [ANSWERED_BY]: FastifyReply })[ANSWERED_BY]
    // Undici takes an emitter in place of an AbortSignal, at a fraction of its cost.
    const signal = new EventEmitter()
    reply.raw.once('close', () => {
      if (!reply.raw.writableFinished) signal.emit('abort')
    })
    const path = `${pathPrefix}${reply.request.raw.url}`
    pool.request({ ...options, path, signal, responseHeaders: 'raw' }, (error, data) => {
      if (error) return callback(error, data)
      const headers = browserResponseHeaders(data.headers as unknown as string[], origin, reply.getHeaders())
      callback(null, { ...data, headers: headersObject(headers) })
    })
  }
})

const EMPTY: ReadonlySet<number> = new Set([204, 205])

const passOn = (reply: FastifyReply, { stream }: { readonly stream: Readable }): void => {
  if (!EMPTY.has(reply.statusCode)) {
    reply.send(stream)
    return
  }
  stream.resume()
  reply.code(204).removeHeader('content-length').removeHeader('content-type').send()
}
