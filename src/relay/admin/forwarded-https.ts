import type { IncomingMessage } from 'node:http'
import { AddressSet } from '../../shared/address.js'

/** Whether a proxy of ours says that the browser came over https. */
export const forwardedHttps = (trustedProxies: readonly string[]): ((request: IncomingMessage) => boolean) => {
  const trusted = new AddressSet(trustedProxies)
  return ({ headers, socket }) => {
    const [first = ''] = String(headers['x-forwarded-proto'] ?? '').split(',')
    return first.trim().toLowerCase() === 'https' && trusted.has(socket.remoteAddress)
  }
}
