import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Tracer } from '../../shared/tracing.js'
import type { RequestOutcome } from './open-replies.js'

export interface TracingOptions {
  readonly tracer: Tracer
}

/** Probes, metrics, and realtime connections, which stay open for hours. */
const UNTRACED = /^\/(?:api\/health|metrics|connection|emulation)(?:[/?]|$)/

/** Starts a span for each request. `request-log` ends it. Registered only if tracing is enabled. */
export const tracing = fp<TracingOptions>(
  async (app, { tracer }) => {
    app.addHook('onRequest', (request, _reply, done) => {
      const { method, url, headers } = request
      if (!UNTRACED.test(url)) {
        const attributes = { 'http.request.method': method }
        request.span = tracer.startSpan(method, headers, { kind: 'server', attributes })
      }
      done()
    })
    app.addHook('onClose', () => tracer.close())
  },
  { name: 'tracing', fastify: '5.x' }
)

/** `path` is without query and secrets. */
export const endRequestSpan = (
  { span, method, clientAddress, errorCode }: FastifyRequest,
  { status, cutShort }: RequestOutcome,
  route: string,
  path: string
): void => {
  // Undefined for requests that the router rejected before any hook ran.
  if (!span) return
  span.rename(`${method} ${route}`)
  span.setAttributes({
    'http.route': route,
    'url.path': path,
    'client.address': clientAddress,
    'http.response.status_code': status,
    ...(errorCode !== null && { 'gatehouse.error_code': errorCode })
  })
  if (cutShort) span.end('cut_short')
  else if (status >= 500) span.end(errorCode ?? String(status))
  else span.end()
}
