import type { ServerResponse } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { errors } from 'undici'
import { readBounded } from '../../shared/bounded-body.js'
import { toError } from '../../shared/error-message.js'
import type { Span } from '../../shared/tracing.js'
import { routeLabel } from '../http/client-request.js'
import { isClosed, onceClosed } from '../http/response-close.js'
import { type Backend, type BackendMetrics, toBackendError } from './backend-pool.js'
import { endBackendSpan, startBackendSpan } from './backend-span.js'
import { acquireSlot } from './capacity.js'
import { MAX_STATUS } from './forward.js'
import { backendRequestHeaders } from './request-headers.js'
import { rawHeadersOf, withoutNames } from './response-headers.js'

/** A POST request of the gateway to the backend: login, logout and exchange. */
export interface BackendCall {
  /** The client's request. Its span contains the span of the call. */
  readonly request: FastifyRequest
  /** A path of the gateway, with its query. */
  readonly path: string
  /** The template of the path's route, for the metrics. */
  readonly route: string
  /** Alternating names and values. Without Accept-Encoding: the response must not be compressed. */
  readonly headers: (span: Span | null) => readonly string[]
  readonly body: string | null
  /**
   * Whether the call counts towards the anonymous share. Signing in does not: it must work while the share is exhausted, and the
   * login limit bounds it.
   */
  readonly anonymous: boolean
  /** Aborts the call when it closes. */
  readonly response?: ServerResponse
  /** Limits the whole call. By default BACKEND_TIMEOUT_MS limits the time until the response begins, and each pause in it. */
  readonly timeoutMs?: number
}

/** A response of the backend, read completely. */
export interface BackendResponse {
  readonly status: number
  /** As received: alternating names and values. */
  readonly headers: ReturnType<typeof rawHeadersOf>
  readonly body: Buffer
}

/** Throws a `GatewayError` if there is no response. */
export type CallBackend = (call: BackendCall) => Promise<BackendResponse>

export interface BackendCallOptions {
  readonly backend: Backend
  readonly metrics: BackendMetrics
}

// Much larger than a session. Responses are held in memory, and many users may sign in at the same time.
const MAX_RESPONSE_BYTES = 1024 * 1024

/** Like the forwarder, for responses that the gateway itself reads. */
export const createBackendCall =
  ({ backend, metrics }: BackendCallOptions): CallBackend =>
  async (call) => {
    const abort = new AbortController()
    const { response, timeoutMs } = call
    if (response !== undefined) onceClosed(response, () => abort.abort(new Error('the client disconnected')))
    const timer =
      timeoutMs === undefined ? undefined : setTimeout(() => abort.abort(new errors.HeadersTimeoutError()), timeoutMs)
    try {
      return await send(call, backend, metrics, abort.signal)
    } catch (error) {
      throw toBackendError(error)
    } finally {
      clearTimeout(timer)
    }
  }

const send = async (
  { request, path, route, headers, body, anonymous, response: clientResponse }: BackendCall,
  backend: Backend,
  metrics: BackendMetrics,
  signal: AbortSignal
): Promise<BackendResponse> => {
  const startedAt = performance.now()
  const { waitedMs, release } = await acquireSlot(backend.capacity, anonymous, signal)
  const span = startBackendSpan(request, 'POST', backend)
  let status = 0
  let failure: Error | null = null
  try {
    const response = await backend.pool.request({
      method: 'POST',
      path: backend.pathOf(path),
      headers: [...headers(span), 'accept-encoding', 'identity'],
      body,
      headersTimeout: Math.max(1, backend.timeoutMs - waitedMs),
      signal,
      responseHeaders: 'raw'
    })
    status = response.statusCode
    if (status > MAX_STATUS) {
      response.body.destroy()
      throw new Error(`invalid response status ${status}`)
    }
    metrics.backendResponded(route, (performance.now() - startedAt) / 1000)
    return {
      status,
      headers: rawHeadersOf(response.headers),
      body: await readBounded(response.body, MAX_RESPONSE_BYTES)
    }
  } catch (error) {
    failure = toError(error)
    if (clientResponse === undefined || !isClosed(clientResponse)) metrics.backendFailed(error)
    throw error
  } finally {
    endBackendSpan(span, status, failure)
    release()
  }
}

const ENCODING_HEADERS: ReadonlySet<string> = new Set(['accept-encoding'])

/** A call that forwards the request of a reply with this body. */
export const forwardedCall = (
  { request, raw }: FastifyReply,
  body: string | null,
  { publicHost, anonymous }: { readonly publicHost: string | null; readonly anonymous: boolean }
): BackendCall => ({
  request,
  path: request.raw.url ?? '',
  route: routeLabel(request),
  headers: (span) =>
    withoutNames(backendRequestHeaders(request, publicHost, body === null ? 'none' : 'json', span), ENCODING_HEADERS),
  body,
  anonymous,
  response: raw
})
