import type { IncomingMessage } from 'node:http'
import { originCheck } from '../edge/origin.js'

const isOfHost = originCheck([])

/**
 * Whether a request comes from the admin page itself, or from no page at all. Browsers that say how page and address are
 * related are believed: a proxy in front may have changed the host, and no page can set that header.
 */
export const isFromOwnPage = ({ headers }: IncomingMessage): boolean => {
  const site = headers['sec-fetch-site']
  if (site !== undefined) return site === 'same-origin' || (site === 'none' && headers.origin === undefined)
  return isOfHost(headers.origin, headers.host)
}
