import type { IncomingMessage } from 'node:http'

const ABSOLUTE_FORM = /^https?:\/\/([^/?#]*)([^#]*)$/i

/**
 * RFC 9112: a server must accept `GET http://host/path`. Such a target becomes its path and query if its authority equals
 * the Host header, which clients must send alike. Any other target stays as it is, and is refused as ambiguous.
 */
export const originForm = ({ url = '', headers }: Pick<IncomingMessage, 'url' | 'headers'>): string => {
  if (url.startsWith('/')) return url
  const [, authority = '', rest = ''] = ABSOLUTE_FORM.exec(url) ?? []
  if (authority === '' || authority.toLowerCase() !== headers.host?.toLowerCase()) return url
  return rest.startsWith('/') ? rest : `/${rest}`
}
