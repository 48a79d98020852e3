import type { FastifyRequest } from 'fastify'
import type { Span } from '../../shared/tracing.js'
import { portOf } from '../../shared/url-port.js'
import type { Backend } from './backend-pool.js'

/** Starts the span of a request to the backend; null if the client's request is not traced. */
export const startBackendSpan = ({ span }: FastifyRequest, method: string, { origin }: Backend): Span | null => {
  if (!span) return null
  const url = new URL(origin)
  return span.startChild(method, {
    kind: 'client',
    attributes: {
      'http.request.method': method,
      'server.address': url.hostname,
      'server.port': portOf(url)
    }
  })
}

/** `status` is 0 without a response. */
export const endBackendSpan = (span: Span | null, status: number, error?: Error | null): void => {
  if (span === null) return
  if (status > 0) span.setAttributes({ 'http.response.status_code': status })
  if (error) span.end(errorType(error))
  else if (status >= 400) span.end(String(status))
  else span.end()
}

const errorType = (error: Error): string =>
  'code' in error && typeof error.code === 'string' ? error.code : error.name
