import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import fp from 'fastify-plugin'

/**
 * Sends `100 Continue` when the body is first read: after every check that does not need the body, and after the wait for
 * a backend connection. A request that is rejected before that is not asked for its body, and Node closes its connection,
 * because the client may or may not send the body.
 */
export const expectContinue = fp(
  async (app) => {
    app.addHook('preParsing', (request, reply, payload, done) =>
      done(null, awaitsContinue(request.raw) ? continuedBody(request.raw, reply.raw) : payload)
    )
  },
  { name: 'expect-continue', fastify: '5.x' }
)

/** `connection-errors.ts` has rejected every other expectation. HTTP/1.0 has none. */
const awaitsContinue = ({ headers, httpVersion }: IncomingMessage): boolean =>
  headers.expect !== undefined &&
  httpVersion === '1.1' &&
  (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0)

const continuedBody = (request: IncomingMessage, response: ServerResponse): Readable => {
  let hasBegun = false
  const begin = (): void => {
    hasBegun = true
    if (!response.headersSent) response.writeContinue()
    request.on('data', (chunk: Buffer) => {
      if (!body.push(chunk)) request.pause()
    })
    request.on('end', () => body.push(null))
    request.on('error', (error) => body.destroy(error))
  }
  const body = new Readable({
    read() {
      if (hasBegun) request.resume()
      else begin()
    }
  })
  return body
}
