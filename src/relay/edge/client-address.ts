import type { IncomingMessage } from 'node:http'
import { AddressSet, normalAddress } from '../../shared/address.js'

/** Whose request this is: the other end of the socket, or whom a trusted proxy names. */
export type ClientAddress = (request: IncomingMessage) => string

export const clientAddress = (trustedProxies: readonly string[]): ClientAddress => {
  const trusted = new AddressSet(trustedProxies)
  return (request) => {
    const peer = normalAddress(request.socket.remoteAddress ?? '') ?? ''
    const forwarded = request.headers['x-forwarded-for']
    if (trustedProxies.length === 0 || forwarded === undefined || !trusted.has(peer)) return peer
    // From the last, which our own proxy wrote, back to the first that is not a proxy of ours.
    const chain = String(forwarded).split(',').reverse()
    let client = peer
    for (const part of chain) {
      const address = normalAddress(part)
      if (address === null) return client
      client = address
      if (!trusted.has(address)) return client
    }
    return client
  }
}
