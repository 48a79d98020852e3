import { once } from 'node:events'
import {
  type Agent,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders
} from 'node:http'
import { connect } from 'node:net'
import { buffer } from 'node:stream/consumers'

export interface HttpResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /** Parses the body as JSON. */
  json(): { success: boolean; error: { code: string; message: string; details: ErrorDetail[] }; requestId: string }
  /** The code of a gateway error, or '' for any other response. */
  readonly code: string
}

/** An invalid field of a request. */
export interface ErrorDetail {
  readonly path: string
  readonly message: string
}

export const detailsOf = (response: HttpResponse): readonly ErrorDetail[] => response.json().error.details

export interface Message {
  readonly method?: string
  readonly headers?: OutgoingHttpHeaders
  readonly body?: string | Buffer
  /** Reuses connections; by default each request has a new connection. */
  readonly agent?: Agent
}

/** Sends one request. The path is not normalised. */
export const send = async (
  base: string,
  path: string,
  { method = 'GET', headers = {}, body, agent }: Message = {}
): Promise<HttpResponse> => {
  const { hostname, port } = new URL(base)
  const announced = { ...lengthOf(body, headers), ...headers }
  const request = httpRequest({ hostname, port, path, method, headers: announced, agent: agent ?? false })
  request.end(body)
  const response: IncomingMessage = (await once(request, 'response'))[0]
  return httpResponse(response.statusCode ?? 0, response.headers, (await buffer(response)).toString())
}

/** Node's client sends the body of a DELETE without Content-Length: the server would parse it as the next request. */
const lengthOf = (body: Message['body'], headers: OutgoingHttpHeaders): OutgoingHttpHeaders =>
  body === undefined || 'transfer-encoding' in headers ? {} : { 'content-length': Buffer.byteLength(body) }

const httpResponse = (status: number, headers: IncomingHttpHeaders, body: string): HttpResponse => ({
  status,
  headers,
  body,
  json: () => JSON.parse(body),
  get code() {
    return headers['x-gateway-error'] === undefined ? '' : JSON.parse(body).error.code
  }
})

/** Sends arbitrary bytes. Resolves with everything received until the server closes the connection. */
export const sendRaw = async (base: string, bytes: string | readonly string[]): Promise<HttpResponse> => {
  const { hostname, port } = new URL(base)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  // A server that responds and closes during our writes resets the connection; the response before that counts.
  socket.on('error', () => undefined)
  const closed = once(socket, 'close')
  for (const part of [bytes].flat()) {
    if (!socket.destroyed) socket.write(part, 'latin1')
  }
  await closed
  return parseResponse(Buffer.concat(chunks).toString('latin1'))
}

const parseResponse = (text: string): HttpResponse => {
  const end = text.indexOf('\r\n\r\n')
  const [statusLine = '', ...lines] = text.slice(0, Math.max(end, 0)).split('\r\n')
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()])
  )
  return httpResponse(Number(statusLine.split(' ')[1] ?? 0), headers, text.slice(end + 4))
}
