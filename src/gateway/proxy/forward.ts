import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Dispatcher } from 'undici'
import { READING_METHODS } from '../access.js'
import type { HeaderTable } from '../security-header-table.js'
import { Exchange, type ExchangeParts } from './exchange.js'
import { type BodyAnnouncement, backendRequestHeaders } from './request-headers.js'

export type ForwardedBody = string | Readable | null

export type Forward = (request: FastifyRequest, reply: FastifyReply, body: ForwardedBody) => void

export interface ForwarderParts extends Omit<ExchangeParts, 'fixedHead'> {
  /** What the backend is told that the browser asked for; null for what the browser says itself. */
  readonly publicHost: string | null
  readonly headerTable: HeaderTable
}

/**
 * Sends a request on to the backend and its answer back. It talks to undici at its lowest level and writes the answer to
 * the socket itself: a proxy library and the streams in between would cost more than all the checks together.
 */
export const forwarder = ({ backend, publicHost, headerTable, watch, log }: ForwarderParts): Forward => {
  const parts: ExchangeParts = { backend, watch, log, fixedHead: Object.entries(headerTable).flat() }
  return (request, reply, body) => {
    const options: Dispatcher.DispatchOptions = {
      method: request.method as Dispatcher.HttpMethod,
      // The very text that was checked.
      path: `${backend.pathPrefix}${request.raw.url}`,
      headers: backendRequestHeaders(request, publicHost, announcement(request.method, body)),
      body,
      // The exchange watches for silence itself: how long one may last depends on the response.
      bodyTimeout: 0
    }
    new Exchange(parts, reply, options).start()
    // Nothing is returned: a reply would make the framework wait for its end, at the price of a dozen listeners.
  }
}

const announcement = (method: string, body: ForwardedBody): BodyAnnouncement => {
  if (typeof body === 'string') return 'json'
  // A read is forwarded without a body.
  return READING_METHODS.has(method) ? 'none' : 'as sent'
}
