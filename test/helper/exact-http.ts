import { once } from 'node:events'
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { Message } from './http.js'

/** A response with its raw header lines and body. */
export interface ExactResponse {
  readonly status: number
  /** The values of all header lines of this name, as latin-1. */
  header(name: string): string[]
  readonly headerNames: readonly string[]
  readonly body: Buffer
}

/** One request on a new connection. Rejects if the response is incomplete. */
export const sendExact = async (base: string, path: string, message: Message = {}): Promise<ExactResponse> =>
  readResponse(await responseOf(browse(base, path, message).end(message.body)))

/** Starts a request that the caller completes or aborts. Errors are reported by waiting for the response. */
export const browse = (base: string, path: string, { method = 'GET', headers = {} }: Message = {}): ClientRequest => {
  const { hostname, port } = new URL(base)
  return httpRequest({ hostname, port, path, method, headers, agent: false }).on('error', () => undefined)
}

/** The response as soon as its head has arrived. */
export const responseOf = async (request: ClientRequest): Promise<IncomingMessage> => {
  const response: IncomingMessage = (await once(request, 'response'))[0]
  return response.on('error', () => undefined)
}

export const readResponse = async (response: IncomingMessage): Promise<ExactResponse> => {
  const { statusCode = 0, rawHeaders } = response
  const body = await buffer(response)
  const names = rawHeaders.filter((_part, index) => index % 2 === 0).map((name) => name.toLowerCase())
  return {
    status: statusCode,
    headerNames: names,
    header: (wanted) => names.flatMap((name, index) => (name === wanted ? [rawHeaders[index * 2 + 1] ?? ''] : [])),
    body
  }
}

/** A connection for arbitrary bytes. */
export const openSocket = async (base: string): Promise<Socket> => {
  const { hostname, port } = new URL(base)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  return socket.on('error', () => undefined)
}

/** The next bytes that arrive on a socket. */
export const nextData = async (socket: Socket): Promise<Buffer> => (await once(socket, 'data'))[0]

/** Sends bytes and returns everything received until the server closes the connection. */
export const sendBytes = async (base: string, bytes: string): Promise<string> => {
  const socket = await openSocket(base)
  socket.write(bytes, 'latin1')
  return (await buffer(socket)).toString('latin1')
}
