import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { toError } from '../shared/error-message.js'

const BODY_WAS_READ = 'The body was read before. Mount the event handler before express.json() and other body parsers.'

/**
 * Turns a handler of `Request` and `Response` into a handler for Express and a listener for `http.createServer`. A body parser
 * must not have read the body, because the signature belongs to its bytes. Express receives errors through `next`; without it
 * the listener responds with status 500 and emits a warning of the process.
 */
export const nodeListener =
  (handle: (request: Request) => Promise<Response>) =>
  async (request: IncomingMessage, response: ServerResponse, next?: (error: unknown) => void): Promise<void> => {
    try {
      if (request.readableDidRead) throw new Error(BODY_WAS_READ)
      const answer = await handle(toRequest(request))
      const body = Buffer.from(await answer.arrayBuffer())
      response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(body)
    } catch (error) {
      if (next !== undefined) return next(error)
      process.emitWarning(toError(error))
      response.writeHead(500).end()
    }
  }

const toRequest = (request: IncomingMessage): Request => {
  const headers = new Headers()
  for (const [name, value] of Object.entries(request.headersDistinct))
    for (const each of value ?? []) headers.append(name, each)
  const { method = 'POST', url = '/' } = request
  const init = { method, headers }
  if (method === 'GET' || method === 'HEAD') return new Request(new URL(url, 'http://localhost'), init)
  return new Request(new URL(url, 'http://localhost'), { ...init, body: Readable.toWeb(request), duplex: 'half' })
}
