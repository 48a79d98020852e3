import type { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { onceClosed } from '../http/response-close.js'
import { hasCredentials } from '../session/credentials.js'
import { type Backend, type BackendMetrics, toBackendError } from './backend-pool.js'
import { endBackendSpan, startBackendSpan } from './backend-span.js'
import { acquireSlot } from './capacity.js'
import { MAX_STATUS } from './forward.js'
import { backendRequestHeaders } from './request-headers.js'
import { browserResponseHeaders, rawHeadersOf, withoutNames } from './response-headers.js'

/** A response of the backend, read completely. */
export interface BackendResponse {
  readonly status: number
  /** Filtered for the browser: alternating names and values. */
  readonly headers: readonly string[]
  readonly body: Buffer
}

export interface BackendCallOptions {
  readonly backend: Backend
  readonly publicHost: string | null
  readonly metrics: BackendMetrics
}

/** Forwards the request of a reply with this body. Throws a `GatewayError` if there is no response. */
export type BackendCall = (reply: FastifyReply, body: string | null) => Promise<BackendResponse>

// Much larger than a session. Responses are held in memory, and many users may sign in at the same time.
const MAX_RESPONSE_BYTES = 1024 * 1024

const ENCODING_HEADERS: ReadonlySet<string> = new Set(['accept-encoding'])

/** Like the forwarder, for responses that the gateway itself reads: they are buffered and must not be compressed. */
export const createBackendCall = ({ backend, publicHost, metrics }: BackendCallOptions): BackendCall => {
  const call = async (reply: FastifyReply, body: string | null, signal: AbortSignal): Promise<BackendResponse> => {
    const startedAt = performance.now()
    const { waitedMs, release } = await acquireSlot(backend.capacity, signal)
    const span = startBackendSpan(reply.request, 'POST', backend)
    let status = 0
    let failure: Error | null = null
    try {
      const requestHeaders = backendRequestHeaders(reply.request, publicHost, body === null ? 'none' : 'json', span)
      const response = await backend.pool.request({
        method: 'POST',
        path: backend.pathOf(reply.request.raw.url ?? ''),
        headers: [...withoutNames(requestHeaders, ENCODING_HEADERS), 'accept-encoding', 'identity'],
        body,
        headersTimeout: Math.max(1, backend.timeoutMs - waitedMs),
        signal,
        responseHeaders: 'raw'
      })
      const { body: stream } = response
      status = response.statusCode
      if (status > MAX_STATUS) {
        stream.destroy()
        throw new Error(`invalid response status ${status}`)
      }
      metrics.responded(reply.request, (performance.now() - startedAt) / 1000)
      const isPersonal = hasCredentials(reply.request)
      const headers = browserResponseHeaders(rawHeadersOf(response.headers), backend, reply.getHeaders(), isPersonal)
      return { status, headers, body: await readBody(stream) }
    } catch (error) {
      failure = error instanceof Error ? error : new Error(String(error))
      if (!signal.aborted) metrics.failed(error)
      throw error
    } finally {
      endBackendSpan(span, status, failure)
      release()
    }
  }

  return async (reply, body) => {
    const abort = new AbortController()
    onceClosed(reply.raw, () => abort.abort(new Error('the client disconnected')))
    try {
      return await call(reply, body, abort.signal)
    } catch (error) {
      throw toBackendError(error)
    }
  }
}

export const readBody = async (stream: Readable): Promise<Buffer> => {
  const chunks: Buffer[] = []
  let bytes = 0
  // Leaving the loop early destroys the stream and with it the connection.
  for await (const chunk of stream) {
    bytes += chunk.length
    if (bytes > MAX_RESPONSE_BYTES) throw new Error(`the response is longer than ${MAX_RESPONSE_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
