import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { clientAddress, routeLabel } from '../http/client-request.js'
import type { OpenReplies, RequestEnded, RequestOutcome } from '../http/open-replies.js'
import type { SecretPaths } from '../http/secret-paths.js'
import { endRequestSpan } from '../http/tracing.js'
import type { GatewayMetrics } from '../metrics.js'

export interface RequestLogOptions {
  readonly openReplies: OpenReplies
  readonly requestEnded: RequestEnded
}

/** Logs and counts every request once: here if its response was sent, by `OpenReplies` if the connection closed before. */
export const requestLog = fp<RequestLogOptions>(
  async (app, { openReplies, requestEnded }) => {
    app.decorateReply('openOn', null)
    app.addHook('onRequest', (_request, reply, done) => {
      openReplies.add(reply)
      done()
    })
    app.addHook('onResponse', (_request, reply, done) => {
      if (openReplies.remove(reply)) requestEnded(reply, reply.raw.errored !== null)
      done()
    })
  },
  { name: 'request-log', fastify: '5.x', dependencies: ['request-context'] }
)

/** For requests that the router rejects before any hook runs, and therefore without the properties of the context. */
export const trackRejected = (reply: FastifyReply, { openReplies, requestEnded }: RequestLogOptions): void => {
  reply.request.path = ''
  reply.request.clientAddress = clientAddress(reply.request)
  openReplies.add(reply)
  reply.raw.once('finish', () => {
    if (openReplies.remove(reply)) requestEnded(reply, false)
  })
}

// The status that other servers log for a client that disconnected before the response.
const CLIENT_CLOSED_REQUEST = 499

export const recordRequests =
  (metrics: GatewayMetrics, secretPaths: SecretPaths): RequestEnded =>
  (reply, cutShort) => {
    const { request, raw } = reply
    const status = cutShort && !raw.headersSent ? CLIENT_CLOSED_REQUEST : raw.statusCode
    const outcome: RequestOutcome = { status, cutShort, ms: reply.elapsedTime }
    const route = routeLabel(request)
    const path = secretPaths.masked(requestedPath(request)).slice(0, MAX_PATH_CHARACTERS)
    metrics.requestEnded(route, request.method, outcome)
    logRequest(request, outcome, route, path)
    endRequestSpan(request, outcome, route, path)
  }

/** One line per request. Without query and headers, which contain secrets. */
const logRequest = (
  request: FastifyRequest,
  { status, cutShort, ms }: RequestOutcome,
  route: string,
  path: string
): void => {
  const { method, clientAddress: ip, errorCode, headers } = request
  const line = { method, path, route, status, ms: Math.round(ms * 10) / 10, ip }
  // Names the page that ALLOWED_ORIGINS lacks, or shows that a proxy has replaced the host.
  const origin = errorCode === 'ORIGIN_REFUSED' ? headers.origin?.slice(0, MAX_ORIGIN_CHARACTERS) : undefined
  if (errorCode === null && !cutShort) request.log.info(line, 'request')
  else
    request.log.info(
      { ...line, ...(errorCode && { code: errorCode }), ...(origin && { origin }), ...(cutShort && { cutShort }) },
      'request'
    )
}

const MAX_ORIGIN_CHARACTERS = 256

const MAX_PATH_CHARACTERS = 256

/** The raw path for a request that was rejected before it had a canonical one. */
const requestedPath = ({ path, raw }: FastifyRequest): string =>
  path === '' ? (raw.url ?? '').split('?', 1).join('') : path
