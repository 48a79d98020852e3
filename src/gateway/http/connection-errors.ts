import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import fp from 'fastify-plugin'
import { SERVED_METHODS } from '../access.js'
import { errorBody, errorHeaders, GatewayError, type GatewayErrorCode, toGatewayError } from '../errors.js'
import { requestId } from './client-request.js'
import { afterReplies } from './connection-drain.js'
import { stopDraining } from './draining-response.js'
import type { HeaderTable } from './header-table.js'
import type { OpenReplies } from './open-replies.js'
import { MAX_URL_LENGTH } from './request-target.js'

// Node's HTTP server rejects some requests before Fastify sees them. Their responses look like every other error response.

export interface ConnectionErrorsOptions {
  readonly headerTable: HeaderTable
  readonly openReplies: OpenReplies
  readonly countError: (code: GatewayErrorCode) => void
}

/** Rejects CONNECT, which Node's server reports by an event instead of a request. */
export const connectionErrors = fp<ConnectionErrorsOptions>(
  async (app, options) => {
    rejectTunnels(app.server, options)
  },
  { name: 'connection-errors', fastify: '5.x' }
)

interface ParserError extends Error {
  readonly code?: string
  /** The bytes at which the parser stopped. */
  readonly rawPacket?: unknown
}

/** Fastify's `clientErrorHandler`: responds to requests that the HTTP parser rejected, or that did not arrive in time. */
export const clientErrorHandler = ({ headerTable, openReplies, countError }: ConnectionErrorsOptions) => {
  // The parser repeats its error for all bytes that arrive after it.
  const rejected = new WeakSet<Socket>()
  return (error: ParserError, socket: Socket): void => {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    if (rejected.has(socket)) return
    rejected.add(socket)
    const gatewayError = fromParserError(error)
    const earlier = [...openReplies.on(socket)]
    const unfinished = earlier.at(-1)?.request.raw.complete === false ? earlier.pop() : undefined
    afterReplies(earlier, () => {
      if (unfinished?.raw.headersSent) {
        // Its response has begun, so no other can take its place. A complete one is still sent.
        if (stopDraining(unfinished.raw)) return
        if (unfinished.raw.writableEnded) afterReplies([unfinished], () => socket.destroySoon())
        else socket.destroy()
        return
      }
      countError(gatewayError.code)
      const isBodiless = earlier.length === 0 && isHead(error.rawPacket)
      endWith(socket, responseText(gatewayError, headerTable, isBodiless))
    })
  }
}

/** Sends the response and closes the connection, unless the client or an earlier response has closed it. */
const endWith = (socket: Socket, text: string): void => {
  if (!socket.writable) {
    socket.destroy()
    return
  }
  socket.write(text)
  socket.destroySoon()
}

const fromParserError = (error: ParserError): GatewayError => {
  if (error.code === 'HPE_HEADER_OVERFLOW' && hasLongRequestLine(error.rawPacket))
    return new GatewayError('URI_TOO_LONG')
  const gatewayError = toGatewayError(error)
  return gatewayError.code === 'INTERNAL' ? new GatewayError('MALFORMED_REQUEST') : gatewayError
}

/** The parser counts the request line among the headers, although the line alone may be too long. */
const hasLongRequestLine = (packet: unknown): boolean => {
  if (!Buffer.isBuffer(packet) || !/^[A-Z]+ /.test(packet.toString('latin1', 0, 16))) return false
  const end = packet.indexOf('\n')
  return (end === -1 ? packet.length : end) > MAX_URL_LENGTH
}

/** The response to HEAD has no body: a client would read bytes after the headers as the next response. */
const isHead = (packet: unknown): boolean => Buffer.isBuffer(packet) && packet.toString('latin1', 0, 5) === 'HEAD '

const responseText = (error: GatewayError, table: HeaderTable, isBodiless: boolean): string => {
  const id = requestId({ headers: {} })
  const body = JSON.stringify(errorBody(error, id))
  const headers: Record<string, string> = {
    ...table,
    ...errorHeaders(error),
    'x-request-id': id,
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close'
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const statusLine = `HTTP/1.1 ${error.statusCode} ${STATUS_CODES[error.statusCode]}\r\n`
  return `${statusLine}${lines.join('')}\r\n${isBodiless ? '' : body}`
}

/** CONNECT requests a tunnel. Without a listener Node closes the connection without a response. */
const rejectTunnels = (server: Server, { headerTable, openReplies, countError }: ConnectionErrorsOptions): void => {
  server.on('connect', (_request: IncomingMessage, socket: Socket) => {
    countError('METHOD_NOT_ALLOWED')
    socket.on('error', () => undefined)
    const error = new GatewayError('METHOD_NOT_ALLOWED', { headers: { allow: [...SERVED_METHODS].join(', ') } })
    afterReplies(openReplies.on(socket), () => endWith(socket, responseText(error, headerTable, false)))
  })
}
