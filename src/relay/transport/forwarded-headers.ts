import type { IncomingMessage } from 'node:http'
import type { ClientHeaders } from '../core/event-proxies.js'
import type { Relay } from '../core/relay.js'

/** The headers of a client's request that some proxy forwards or that names the user; null for none, so that connections keep nothing else in memory. */
export const forwardedRequestHeaders = (
  request: IncomingMessage,
  { requestHeaderNames }: Pick<Relay, 'requestHeaderNames'>
): ClientHeaders | null => {
  if (requestHeaderNames.length === 0) return null
  const { headersDistinct } = request
  const forwarded = requestHeaderNames.flatMap((name) => {
    const values = headersDistinct[name]
    return values === undefined ? [] : [[name, values] as const]
  })
  return forwarded.length === 0 ? null : Object.fromEntries(forwarded)
}
