import { request as httpRequest, type IncomingMessage } from 'node:http'
import type { Test } from 'tap'
import { WebSocket } from 'ws'
import { eventually } from './eventually.js'
import { responseOf } from './exact-http.js'
import { required } from './required.js'
import type { ConnectResult, ServerPush } from './server-message.js'

// Clients that only receive, over each of their transports.

/** A message of a unidirectional transport: a push without its envelope. */
interface UnidirectionalMessage extends ServerPush {
  readonly connect?: ConnectResult
}

/** The messages that a client has received. */
export interface Receiver {
  readonly messages: UnidirectionalMessage[]
  readonly ended: Promise<unknown>
  close(): void
}

type Connect = (t: Test, url: string, request: unknown, headers?: Record<string, string>) => Promise<Receiver>

const receive = (t: Test, response: IncomingMessage, messageOf: (block: string) => string | null, end: string) => {
  const messages: UnidirectionalMessage[] = []
  let rest = ''
  response.setEncoding('utf8')
  response.on('data', (chunk: string) => {
    const blocks = (rest + chunk).replaceAll('\r\n', '\n').split(end)
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const message = messageOf(block.trim())
      if (message !== null) messages.push(JSON.parse(message))
    }
  })
  response.on('error', () => undefined)
  const close = (): void => void response.destroy()
  t.teardown(close)
  return { messages, ended: new Promise((resolve) => response.once('close', resolve)), close }
}

const openStream = async (t: Test, url: string, path: string, method: string, body: string, headers = {}) => {
  const request = httpRequest(`${url}${path}`, { method, headers })
  request.on('error', () => undefined)
  t.teardown(() => request.destroy())
  request.end(body)
  return responseOf(request)
}

const eventData = (block: string): string | null => (block.startsWith('data: ') ? block.slice('data: '.length) : null)

const uniSseGet: Connect = async (t, url, request, headers) => {
  const path = `/connection/uni_sse?cf_connect=${encodeURIComponent(JSON.stringify(request))}`
  return receive(t, await openStream(t, url, path, 'GET', '', headers), eventData, '\n\n')
}

const uniSsePost: Connect = async (t, url, request, headers) =>
  receive(
    t,
    await openStream(t, url, '/connection/uni_sse', 'POST', JSON.stringify(request), headers),
    eventData,
    '\n\n'
  )

export const uniHttpStream: Connect = async (t, url, request, headers) =>
  receive(
    t,
    await openStream(t, url, '/connection/uni_http_stream', 'POST', JSON.stringify(request), headers),
    (line) => (line === '' ? null : line),
    '\n'
  )

export const openUnidirectionalWebSocket = (
  t: Test,
  url: string,
  query: string,
  headers?: Record<string, string>
): [WebSocket, Receiver] => {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/connection/uni_websocket${query}`, { headers })
  const messages: UnidirectionalMessage[] = []
  socket.on('message', (data) => messages.push(JSON.parse(data.toString())))
  socket.on('error', () => undefined)
  t.teardown(() => socket.terminate())
  const ended = new Promise((resolve) => socket.once('close', (code, reason) => resolve([code, reason.toString()])))
  return [socket, { messages, ended, close: () => socket.terminate() }]
}

export const connectQuery = (request: unknown): string => `?cf_connect=${encodeURIComponent(JSON.stringify(request))}`

const uniWebSocketQuery: Connect = async (t, url, request, headers) =>
  openUnidirectionalWebSocket(t, url, connectQuery(request), headers)[1]

const uniWebSocketMessage: Connect = async (t, url, request, headers) => {
  const [socket, receiver] = openUnidirectionalWebSocket(t, url, '', headers)
  socket.once('open', () => socket.send(JSON.stringify(request)))
  return receiver
}

export const UNIDIRECTIONAL_KINDS: Readonly<Record<string, Connect>> = {
  'uni_sse with GET': uniSseGet,
  'uni_sse with POST': uniSsePost,
  uni_http_stream: uniHttpStream,
  'uni_websocket with a query': uniWebSocketQuery,
  'uni_websocket with a first message': uniWebSocketMessage
}

export const firstMessage = async ({ messages }: Receiver): Promise<UnidirectionalMessage> => {
  await eventually(() => messages.length > 0)
  return messages[0] ?? {}
}

export const connectResult = async (receiver: Receiver): Promise<ConnectResult> =>
  required((await firstMessage(receiver)).connect)
