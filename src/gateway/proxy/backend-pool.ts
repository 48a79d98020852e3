import { setTimeout as delay } from 'node:timers/promises'
import { buildConnector, errors, Pool } from 'undici'
import { errorCode } from '../../shared/error-code.js'
import { READING_METHODS } from '../access.js'
import { GatewayError } from '../errors.js'
import { BackendCapacity } from './capacity.js'

const CONNECT_TIMEOUT_MS = 2_000

// Shorter than the keep-alive timeout of common servers. The gateway must close idle connections first; otherwise a
// request may be written to a connection that the backend is closing.
const KEEP_ALIVE_MS = 4_000

const MAX_HEADER_BYTES = 64 * 1024

/** The backend's address, connection pool and limits. All requests to the backend use it, except health checks. */
export interface Backend {
  /** Acquire capacity before using the pool. */
  readonly capacity: BackendCapacity
  readonly pool: Pool
  readonly timeoutMs: number
  /** How long a `text/event-stream` response may be silent. */
  readonly streamIdleMs: number
  /** How many bytes of a response are buffered for a slow client. */
  readonly responseBufferBytes: number
  readonly origin: string
  /** The path at the backend for a path of the gateway. */
  readonly pathOf: (path: string) => string
  /** The start of the gateway's paths that the backend's paths do not have. */
  readonly strippedPrefix: string
  /** Acting headers of its responses that browsers receive, in lower case. */
  readonly passedHeaders: ReadonlySet<string>
  /** Origin, and the path of the backend's URL without a trailing slash. */
  readonly address: string
  /** Closes all connections and aborts the requests on them. */
  readonly destroy: () => Promise<void>
}

/** Receives the outcome of requests to the backend. */
export interface BackendMetrics {
  /** Called when the headers of a response have arrived. `route` is the template of a route. */
  backendResponded(route: string, seconds: number): void
  /** Not called if the client disconnected, which is not an error of the backend. */
  backendFailed(error: unknown): void
}

export interface BackendConfig {
  readonly url: string
  /** Empty, or the start of the gateway's paths that the backend's paths do not have. */
  readonly strippedPrefix: string
  readonly timeoutMs: number
  readonly streamIdleMs: number
  readonly connections: number
  readonly inFlight: number
  readonly anonymousPercent: number
  readonly responseBufferBytes: number
  readonly passedHeaders: readonly string[]
}

export const openBackend = (config: BackendConfig): Backend => {
  const { url, strippedPrefix, timeoutMs, streamIdleMs, connections, inFlight, anonymousPercent } = config
  const { origin, pathname } = new URL(url)
  const pool = new Pool(origin, {
    connections,
    // One request per connection: a slow response must not delay others.
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    maxHeaderSize: MAX_HEADER_BYTES,
    connect: createConnector(Math.min(CONNECT_TIMEOUT_MS, timeoutMs))
  })
  const pathPrefix = pathname.replace(/\/+$/, '')
  return {
    capacity: new BackendCapacity({ connections, inFlight, anonymousPercent, maxWaitMs: timeoutMs }),
    pool,
    timeoutMs,
    streamIdleMs,
    responseBufferBytes: config.responseBufferBytes,
    origin,
    pathOf: (path) => `${pathPrefix}${withRoot(path.slice(strippedPrefix.length))}`,
    strippedPrefix,
    passedHeaders: new Set(config.passedHeaders.map((name) => name.toLowerCase())),
    address: `${origin}${pathPrefix}`,
    destroy: async () => {
      // Requests whose clients were just disconnected are aborted in this turn of the event loop, without an error log.
      await delay(1)
      await pool.destroy()
    }
  }
}

/** A path that was stripped completely is the root of the backend. */
const withRoot = (path: string): string => (path.startsWith('/') ? path : `/${path}`)

/** Socket errors of connections that had received data before. `SocketError` has this information itself. */
const errorsAfterData = new WeakSet<Error>()

const createConnector = (timeout: number): buildConnector.connector => {
  // Explicit, so that neither NODE_TLS_REJECT_UNAUTHORIZED nor other defaults of undici apply.
  const connect = buildConnector({ timeout, rejectUnauthorized: true, allowH2: false })
  return (options, callback) =>
    connect(options, (error, socket) => {
      if (error !== null) {
        callback(error, null)
        return
      }
      socket.once('error', (socketError) => {
        if (socket.bytesRead > 0) errorsAfterData.add(socketError)
      })
      callback(null, socket)
    })
}

const TIMEOUT_CODES: ReadonlySet<string> = new Set([
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_CONNECT_TIMEOUT'
])

/** Maps an error of a request to the backend to the error that the client receives. */
export const toBackendError = (error: unknown): GatewayError => {
  if (error instanceof GatewayError) return error
  const code = errorCode(error)
  return new GatewayError(TIMEOUT_CODES.has(code) ? 'BACKEND_TIMEOUT' : 'BACKEND_UNREACHABLE', { cause: error })
}

const CLOSED_CODES: ReadonlySet<string> = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'])

/**
 * Whether a request without a response may be sent again: it was written to a kept-alive connection that the backend
 * was closing. A write request is never repeated, because the backend may have processed it.
 */
export const isRetryable = (method: string, error: unknown): boolean =>
  READING_METHODS.has(method) && CLOSED_CODES.has(errorCode(error)) && hadReceivedData(error)

/** A new connection that is closed without data would be closed again. */
const hadReceivedData = (error: unknown): boolean =>
  error instanceof errors.SocketError
    ? (error.socket?.bytesRead ?? 0) > 0
    : error instanceof Error && errorsAfterData.has(error)
