import type { Span, Tracer } from '../../shared/tracing.js'
import { portOf } from '../../shared/url-port.js'
import type { ProxyOptions } from '../config/proxy-options.js'
import type { ProxyEvent } from '../config/proxy-selection.js'

/** Starts the span of a call, which begins a trace of its own: a connection may last for days. */
export const startProxySpan = (tracer: Tracer, event: ProxyEvent, { name, origin }: ProxyOptions): Span => {
  const url = new URL(origin)
  return tracer.startSpan(
    `proxy ${event}`,
    {},
    {
      kind: 'client',
      attributes: {
        'http.request.method': 'POST',
        'server.address': url.hostname,
        'server.port': portOf(url),
        'gatehouse.proxy': name
      }
    }
  )
}

/** `status` is 0 without a response. `error` is why the call failed. */
export const endProxySpan = (span: Span | null, status: number, error?: string): void => {
  if (span === null) return
  if (status > 0) span.setAttributes({ 'http.response.status_code': status })
  if (error === undefined) span.end()
  else span.end(error)
}
