import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply } from 'fastify'
import type { Logger } from 'pino'
import { SERVED_METHODS } from '../access.js'
import { errorBody, GatewayError, type GatewayErrorCode, toGatewayError } from '../errors.js'
import { onceClosed, requestId } from '../request-context.js'
import { MAX_URL_LENGTH } from './canonical-path.js'
import type { HeaderTable } from './security-headers.js'
import type { OpenReplies } from './slow-clients.js'

export type SendError = (error: unknown, reply: FastifyReply) => void

/**
 * The only place where a gatewayError becomes an answer, but for those to requests that no hook ever sees: these are in
 * `http-edge.ts`. Faults of ours and of the backend are logged, faults of the caller only counted; and so is what is too
 * much, because a line with a stack for each would make it more.
 */
export const errorSender =
  (count: (code: GatewayErrorCode) => void, log: Pick<Logger, 'error'>): SendError =>
  (error, reply) => {
    const gatewayError = toGatewayError(error)
    const requestId = reply.request.id
    reply.request.errorCode = gatewayError.code
    // A body that ends because its sender left is nobody's fault, and nobody is there to be told.
    const gone = reply.raw.destroyed || reply.request.raw.errored !== null
    if (!gone) count(gatewayError.code)
    if (!gone && gatewayError.statusCode >= 500 && gatewayError.code !== 'OVERLOADED') {
      log.error({ requestId, code: gatewayError.code, err: gatewayError.cause ?? gatewayError }, 'refused')
    }
    reply.code(gatewayError.statusCode).headers(errorHeaders(gatewayError)).send(errorBody(gatewayError, requestId))
  }

/** What every gatewayError carries besides its body. */
export const errorHeaders = (gatewayError: GatewayError): Readonly<Record<string, string>> => ({
  ...gatewayError.headers,
  // Lets an operator tell our refusals from the backend's errors.
  'x-gateway-error': gatewayError.code,
  'cache-control': 'no-store'
})

// Answers to requests that never reach a hook, because Node's HTTP parser or server turns them down by itself. They look
// like every other gatewayError all the same.

interface ParserError extends Error {
  readonly code?: string
  /** The bytes that the parser stopped at. */
  readonly rawPacket?: unknown
}

/** For `clientError`: what the parser could not read, or not in time. */
export const answerUnreadable = (table: HeaderTable, open: OpenReplies, count: (code: GatewayErrorCode) => void) => {
  // The parser repeats its error for everything that arrives after it.
  const answered = new WeakSet<Socket>()
  return (error: ParserError, socket: Socket): void => {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    if (answered.has(socket)) return
    answered.add(socket)
    const gatewayError = fromParserError(error)
    const earlier = open.on(socket)
    const unfinished = earlier.at(-1)?.request.raw.complete === false ? earlier.pop() : undefined
    afterAll(earlier, () => {
      if (unfinished?.raw.headersSent) {
        // Its response has begun: no other can take its place. One that is complete still goes out.
        if (unfinished.raw.writableEnded) afterAll([unfinished], () => socket.destroySoon())
        else socket.destroy()
        return
      }
      count(gatewayError.code)
      const headOnly = earlier.length === 0 && isHead(error.rawPacket)
      endWith(socket, rawAnswer(gatewayError, table, headOnly))
    })
  }
}

/** Responses leave in the order of their requests, so those to complete requests must be out first. */
const afterAll = (replies: readonly FastifyReply[], then: () => void): void => {
  const last = replies.at(-1)
  if (last === undefined) then()
  else onceClosed(last.raw, then)
}

/** The client may have left, or an earlier response may have closed the connection. A client that stays is not waited for. */
const endWith = (socket: Socket, bytes: string): void => {
  if (!socket.writable) {
    socket.destroy()
    return
  }
  socket.write(bytes)
  socket.destroySoon()
}

const fromParserError = (error: ParserError): GatewayError => {
  if (error.code === 'HPE_HEADER_OVERFLOW' && hasLongRequestLine(error.rawPacket))
    return new GatewayError('URI_TOO_LONG')
  const gatewayError = toGatewayError(error)
  return gatewayError.code === 'INTERNAL' ? new GatewayError('MALFORMED_REQUEST') : gatewayError
}

/** The parser counts the request line among the headers, where it may be the line alone that is too long. */
const hasLongRequestLine = (packet: unknown): boolean => {
  if (!Buffer.isBuffer(packet) || !/^[A-Z]+ /.test(packet.toString('latin1', 0, 16))) return false
  const end = packet.indexOf('\n')
  return (end === -1 ? packet.length : end) > MAX_URL_LENGTH
}

/** Its answer has no body, and what follows the headers would be taken for another answer. */
const isHead = (packet: unknown): boolean => Buffer.isBuffer(packet) && packet.toString('latin1', 0, 5) === 'HEAD '

const rawAnswer = (gatewayError: GatewayError, table: HeaderTable, headOnly: boolean): string => {
  const { headers, body } = answerParts(gatewayError, requestId({ headers: {} }), table)
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${gatewayError.statusCode} ${STATUS_CODES[gatewayError.statusCode]}\r\n${lines.join('')}\r\n${headOnly ? '' : body}`
}

/**
 * For requests with `Expect`. `100 Continue` is left to the reader of the body: see `hooks/expect-continue.ts`. Any other
 * expectation is refused here.
 */
export const answerExpectation = (
  server: Server,
  table: HeaderTable,
  count: (code: GatewayErrorCode) => void
): void => {
  const reject = (request: IncomingMessage, response: ServerResponse): void => {
    count('EXPECTATION_FAILED')
    const { headers, body } = answerParts(new GatewayError('EXPECTATION_FAILED'), requestId(request), table)
    response.writeHead(417, headers).end(body)
  }
  server.on('checkExpectation', reject)
  // Node calls this one for every header that contains `100-continue`.
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    if (CONTINUE.test(request.headers.expect ?? '')) server.emit('request', request, response)
    else reject(request, response)
  })
}

// Node joins repeated headers with a comma.
const CONTINUE = /^100-continue(?:, 100-continue)*$/i

/** For CONNECT, which asks for a tunnel. Without a listener Node closes the connection and sends nothing. */
export const rejectTunnels = (
  server: Server,
  table: HeaderTable,
  open: OpenReplies,
  count: (code: GatewayErrorCode) => void
): void => {
  server.on('connect', (_request: IncomingMessage, socket: Socket) => {
    count('METHOD_NOT_ALLOWED')
    socket.on('error', () => undefined)
    const gatewayError = new GatewayError('METHOD_NOT_ALLOWED', { headers: ALLOW })
    afterAll(open.on(socket), () => endWith(socket, rawAnswer(gatewayError, table, false)))
  })
}

const ALLOW = { allow: [...SERVED_METHODS].join(', ') }

/**
 * For the end of the program. A server that closes takes its idle connections along, but neither those that have yet to
 * send a whole request, which browsers open ahead of need, nor those that go idle later: each would hold up the exit until
 * its client leaves. The returned function ends them all, the busy ones after their answer.
 */
export const connectionDrain = (server: Server, open: OpenReplies): (() => void) => {
  const connections = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
  })
  const endAfterAnswers = (socket: Socket): void => {
    const replies = open.on(socket)
    // The client learns it from the headers of the last response, unless they are out already.
    const last = replies.at(-1)?.raw
    if (last !== undefined) last.shouldKeepAlive = false
    afterAll(replies, () => {
      // A request may have arrived meanwhile.
      if (open.on(socket).length === 0) socket.destroySoon()
      else endAfterAnswers(socket)
    })
  }
  return () => connections.forEach(endAfterAnswers)
}

const answerParts = (gatewayError: GatewayError, id: string, table: HeaderTable) => {
  const body = JSON.stringify(errorBody(gatewayError, id))
  const headers: Record<string, string> = {
    ...table,
    ...errorHeaders(gatewayError),
    'x-request-id': id,
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close'
  }
  return { headers, body }
}
