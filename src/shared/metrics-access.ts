import type { IncomingMessage } from 'node:http'
import type { AddressSet } from './address.js'

/** The other end of the socket counts, not what a header says; and what a proxy passes on comes from outside. */
export const mayReadMetrics = ({ headers, socket }: IncomingMessage, allowed: AddressSet): boolean =>
  headers['x-forwarded-for'] === undefined && headers.forwarded === undefined && allowed.has(socket.remoteAddress)
