import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { SERVED_METHODS } from './access.js'
import { Refusal, type RefusalCode, refusalBody, refusalOf } from './errors.js'
import { refusalHeaders } from './refuse.js'
import { requestId } from './request-id.js'
import { MAX_URL_LENGTH } from './request-path.js'
import type { HeaderTable } from './security-header-table.js'

// Answers to requests that never reach a hook, because Node's HTTP parser or server turns them down by itself. They look
// like every other refusal all the same.

interface ParserError extends Error {
  readonly code?: string
  /** The bytes that the parser stopped at. */
  readonly rawPacket?: unknown
}

/** For `clientError`: what the parser could not read, or not in time. */
export const answerUnreadable =
  (table: HeaderTable, count: (code: RefusalCode) => void) =>
  (error: ParserError, socket: Socket): void => {
    // Reset by the other side, or an earlier answer is half written: there is no place for this one.
    if (error.code === 'ECONNRESET' || !socket.writable || answerOn(socket)?.headersSent) {
      socket.destroy()
      return
    }
    const refusal = unreadableRefusal(error)
    count(refusal.code)
    socket.end(rawAnswer(refusal, table, isHead(error.rawPacket)))
    // Who is too slow to ask is not given more time to leave.
    if (refusal.code === 'REQUEST_TIMEOUT') socket.destroySoon()
  }

/** Node keeps the response that a socket is busy with here, and looks at it for its own answer to such errors. */
const answerOn = (socket: Socket): ServerResponse | null | undefined =>
  (socket as Socket & { _httpMessage?: ServerResponse | null })._httpMessage

const unreadableRefusal = (error: ParserError): Refusal => {
  if (error.code === 'HPE_HEADER_OVERFLOW' && hasLongRequestLine(error.rawPacket)) return new Refusal('URI_TOO_LONG')
  const refusal = refusalOf(error)
  return refusal.code === 'INTERNAL' ? new Refusal('MALFORMED_REQUEST') : refusal
}

/** The parser counts the request line among the headers, where it may be the line alone that is too long. */
const hasLongRequestLine = (packet: unknown): boolean => {
  if (!Buffer.isBuffer(packet) || !/^[A-Z]+ /.test(packet.toString('latin1', 0, 16))) return false
  const end = packet.indexOf('\n')
  return (end === -1 ? packet.length : end) > MAX_URL_LENGTH
}

/** Its answer has no body, and what follows the headers would be taken for another answer. */
const isHead = (packet: unknown): boolean => Buffer.isBuffer(packet) && packet.toString('latin1', 0, 5) === 'HEAD '

const rawAnswer = (refusal: Refusal, table: HeaderTable, headOnly: boolean): string => {
  const { headers, body } = answerParts(refusal, requestId({ headers: {} }), table)
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${refusal.statusCode} ${STATUS_CODES[refusal.statusCode]}\r\n${lines.join('')}\r\n${headOnly ? '' : body}`
}

/** For `Expect` with anything but `100-continue`. */
export const answerExpectation = (server: Server, table: HeaderTable, count: (code: RefusalCode) => void): void => {
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    count('EXPECTATION_FAILED')
    const { headers, body } = answerParts(new Refusal('EXPECTATION_FAILED'), requestId(request), table)
    response.writeHead(417, headers).end(body)
  })
}

/** For CONNECT, which asks for a tunnel: with nobody listening for it, Node closes the connection without a word. */
export const refuseTunnels = (server: Server, table: HeaderTable, count: (code: RefusalCode) => void): void => {
  server.on('connect', (_request: IncomingMessage, socket: Socket) => {
    count('METHOD_NOT_ALLOWED')
    socket.on('error', () => undefined)
    socket.end(rawAnswer(new Refusal('METHOD_NOT_ALLOWED', { headers: ALLOW }), table, false))
  })
}

const ALLOW = { allow: [...SERVED_METHODS].join(', ') }

/**
 * For the end of the program. A server that closes takes its idle connections along, but neither those that have yet to
 * send a whole request, which browsers open ahead of need, nor those that go idle later: each would hold up the exit until
 * its client leaves. The returned function ends them all, the busy ones after their answer.
 */
export const connectionDrain = (server: Server): (() => void) => {
  const connections = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
  })
  return () => connections.forEach(endAfterAnswer)
}

const endAfterAnswer = (socket: Socket): void => {
  const answer = answerOn(socket)
  if (!answer) {
    socket.destroySoon()
    return
  }
  // The client learns it from the headers, unless they are out already.
  answer.shouldKeepAlive = false
  answer.once('close', () => endAfterAnswer(socket))
}

const answerParts = (refusal: Refusal, id: string, table: HeaderTable) => {
  const body = JSON.stringify(refusalBody(refusal, id))
  const headers: Record<string, string> = {
    ...table,
    ...refusalHeaders(refusal),
    'x-request-id': id,
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close'
  }
  return { headers, body }
}
