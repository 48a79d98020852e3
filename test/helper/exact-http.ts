import { once } from 'node:events'
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { Message } from './http.js'

/** An answer of which nothing was decoded, merged or dropped. */
export interface ExactAnswer {
  readonly status: number
  /** Every header line of this name, each byte as one character. */
  header(name: string): string[]
  readonly headerNames: readonly string[]
  readonly body: Buffer
}

/** One request on a connection of its own. Rejects where the answer breaks off. */
export const ask = async (base: string, path: string, message: Message = {}): Promise<ExactAnswer> =>
  wholeAnswer(await beginning(browse(base, path, message).end(message.body)))

/** A request that may still be written to, or abandoned. Its errors are for those who wait for its answer. */
export const browse = (base: string, path: string, { method = 'GET', headers = {} }: Message = {}): ClientRequest => {
  const { hostname, port } = new URL(base)
  return httpRequest({ hostname, port, path, method, headers, agent: false }).on('error', () => undefined)
}

/** The answer from its head on. */
export const beginning = async (request: ClientRequest): Promise<IncomingMessage> => {
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  return response.on('error', () => undefined)
}

export const wholeAnswer = async (response: IncomingMessage): Promise<ExactAnswer> => {
  const { statusCode = 0, rawHeaders } = response
  const body = await buffer(response)
  const names = rawHeaders.filter((_part, index) => index % 2 === 0).map((name) => name.toLowerCase())
  return {
    status: statusCode,
    headerNames: names,
    header: (wanted) => names.flatMap((name, index) => (name === wanted ? [rawHeaders[index * 2 + 1] as string] : [])),
    body
  }
}

/** A connection for bytes that no client library would send. */
export const openSocket = async (base: string): Promise<Socket> => {
  const { hostname, port } = new URL(base)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  return socket.on('error', () => undefined)
}

/** All that comes back until the other side closes. */
export const sendBytes = async (base: string, bytes: string): Promise<string> => {
  const socket = await openSocket(base)
  socket.write(bytes, 'latin1')
  return (await buffer(socket)).toString('latin1')
}
