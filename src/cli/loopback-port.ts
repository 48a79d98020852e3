import { AddressSet } from '../shared/ip-address.js'
import { portOf } from '../shared/url-port.js'

const LOOPBACK = new AddressSet(['loopback'])
const LOOPBACK_NAME = 'localhost'

/** The port of an address of this machine without TLS; null for any other text. With TLS a proxy listens there. */
export const loopbackPort = (text: string | null | undefined): number | null => {
  if (!text || !URL.canParse(text)) return null
  const url = new URL(text)
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const isLoopback = host === LOOPBACK_NAME || LOOPBACK.has(host)
  return isLoopback && /^(?:http|ws):$/.test(url.protocol) ? portOf(url) : null
}
