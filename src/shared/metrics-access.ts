import type { IncomingMessage } from 'node:http'
import type { AddressSet } from './ip-address.js'

/** Only the peer address counts. A request with forwarding headers came through a proxy and is rejected. */
export const mayReadMetrics = ({ headers, socket }: IncomingMessage, allowed: AddressSet): boolean =>
  headers['x-forwarded-for'] === undefined && headers.forwarded === undefined && allowed.has(socket.remoteAddress)
