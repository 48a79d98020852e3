import type { IncomingMessage } from 'node:http'
import { hasTooManyHeaderLines } from '../../shared/header-lines.js'
import { GatewayError } from '../errors.js'

// Checks of the request line and the headers that also apply where no hook runs.

/** Longer request targets are rejected with 414. */
export const MAX_URL_LENGTH = 8192

/** The rest of the connection cannot be trusted to be requests. */
export const CLOSE = { headers: { connection: 'close' } }

/** For requests too that the router rejects before any hook runs. */
export const tooManyHeaderLines = (request: IncomingMessage): GatewayError | null =>
  hasTooManyHeaderLines(request) ? new GatewayError('HEADERS_TOO_LARGE', CLOSE) : null

const ABSOLUTE_FORM = /^https?:\/\/([^/?#]*)([^#]*)$/i

/**
 * RFC 9112: a server must accept `GET http://host/path`. Such a target becomes its path and query if its authority equals
 * the Host header, as clients must send it. Any other target stays unchanged and is rejected as ambiguous.
 */
export const originForm = ({ url = '', headers }: Pick<IncomingMessage, 'url' | 'headers'>): string => {
  if (url.startsWith('/')) return url
  const [, authority = '', rest = ''] = ABSOLUTE_FORM.exec(url) ?? []
  if (authority === '' || authority.toLowerCase() !== headers.host?.toLowerCase()) return url
  return rest.startsWith('/') ? rest : `/${rest}`
}
