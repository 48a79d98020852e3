import type { Socket } from 'node:net'
import type { FastifyRequest } from 'fastify'
import { buildConnector, Client } from 'undici'
import { READING_METHODS } from '../access.js'
import type { GatewayConfig } from '../config.js'
import { Refusal } from '../errors.js'
import { BackendSlots } from './backend-slots.js'

const CONNECT_TIMEOUT_MS = 2_000

// Shorter than servers commonly keep an idle connection: the side that closes first must be ours, or a request meets a
// connection that is just being closed.
const IDLE_MS = 4_000

const MAX_HEADER_BYTES = 64 * 1024

/** The backend as everything that is forwarded sees it: one pool of connections, one place to be careful in. */
export interface Backend {
  /** Whose turn it is to use which connection. */
  readonly slots: BackendSlots
  readonly timeoutMs: number
  /** How long a `text/event-stream` response may be silent. */
  readonly streamIdleMs: number
  /** How much of a response is kept for a slow reader. */
  readonly responseBufferBytes: number
  readonly origin: string
  /** What stands in front of the gateway's path there; empty for most. */
  readonly pathPrefix: string
  /** Both in one. */
  readonly address: string
}

/** Told how the backend does. */
export interface BackendWatch {
  answered(request: FastifyRequest, seconds: number): void
  failed(error: unknown): void
}

export const openBackend = (config: GatewayConfig['backend']): Backend => {
  const { url, timeoutMs, streamIdleMs, connections, inFlight, anonymousPercent, responseBufferBytes } = config
  const { origin, pathname } = new URL(url)
  const options: Client.Options = {
    // One request at a time per connection: a slow answer must hold up no other.
    pipelining: 1,
    keepAliveTimeout: IDLE_MS,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    maxHeaderSize: MAX_HEADER_BYTES,
    connect: connectorOf(Math.min(CONNECT_TIMEOUT_MS, timeoutMs))
  }
  const slots = new BackendSlots(
    { connections, inFlight, anonymousPercent, waitMs: timeoutMs },
    () => new Client(origin, options)
  )
  const pathPrefix = pathname.replace(/\/+$/, '')
  return { slots, timeoutMs, streamIdleMs, responseBufferBytes, origin, pathPrefix, address: `${origin}${pathPrefix}` }
}

const connectorOf = (timeout: number): buildConnector.connector => {
  // Verifying is the default of TLS and stays so, whatever a proxy library passes by itself.
  const connect = buildConnector({ timeout, rejectUnauthorized: true })
  return (options, callback) =>
    connect(options, (error, socket) => {
      if (error !== null) {
        callback(ofNoKind(error), null)
        return
      }
      // Undici says what a connection has served only where it was closed, not where it was reset.
      socket.once('error', (fault) => Object.assign(fault, { socket: { bytesRead: socket.bytesRead } }))
      joinSmallWrites(socket)
      callback(null, socket)
    })
}

const SMALL_BYTES = 16 * 1024

/**
 * Lets the head and the body of a small request leave in one piece, as Latin-1 text, which keeps every byte. A list of
 * pieces is dearer to write than their copy, by 1 to 3 µs.
 */
const joinSmallWrites = (socket: Socket): void => {
  const { _writev: writeList } = socket
  socket._writev = (chunks, callback) => {
    const text = joined(chunks)
    if (text !== null) socket._write(text, 'latin1', callback)
    else writeList?.call(socket, chunks, callback)
  }
}

const joined = (chunks: readonly { chunk: Buffer | string; encoding: BufferEncoding }[]): string | null => {
  let text = ''
  for (const { chunk, encoding } of chunks) {
    if (typeof chunk !== 'string') text += chunk.toString('latin1', 0, SMALL_BYTES + 1)
    else if (encoding === 'latin1') text += chunk
    else return null
    if (text.length > SMALL_BYTES) return null
  }
  return text
}

/**
 * Undici has a way of its own for a certificate with another name, after which its client believes for ever that a request
 * is under way, and takes no other.
 */
const ofNoKind = (error: NodeJS.ErrnoException): Error =>
  error.code === 'ERR_TLS_CERT_ALTNAME_INVALID' ? new Error(error.message, { cause: error }) : error

const TIMEOUT_CODES: ReadonlySet<string> = new Set([
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_CONNECT_TIMEOUT'
])

/** What went wrong on the way to the backend, as the refusal that the browser gets. */
export const backendRefusal = (error: unknown): Refusal => {
  if (error instanceof Refusal) return error
  const code = codeOf(error)
  return new Refusal(TIMEOUT_CODES.has(code) ? 'BACKEND_TIMEOUT' : 'BACKEND_UNREACHABLE', { cause: error })
}

const CLOSED_CODES: ReadonlySet<string> = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'])

/**
 * Whether a request that nothing came back for met a kept connection that the backend was just closing: it never saw the
 * request, so a read may be sent again, once. A mutation never is: nobody can know for certain how far it came.
 */
export const mayRepeat = (method: string, error: unknown): boolean =>
  READING_METHODS.has(method) && CLOSED_CODES.has(codeOf(error)) && hadServedBefore(error)

/** A connection that has answered before; one that was closed at once would only be closed again. */
const hadServedBefore = (error: unknown): boolean =>
  ((error as { socket?: { bytesRead?: number } | null } | null)?.socket?.bytesRead ?? 0) > 0

const codeOf = (error: unknown): string => (error as { code?: string } | null)?.code ?? ''
