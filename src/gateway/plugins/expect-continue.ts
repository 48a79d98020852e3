import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'

/**
 * Answers `Expect: 100-continue` when the body is first read: after every check that does not need the body, and after the
 * wait for a connection to the backend. A request that is refused before that is not told to send its body, and Node closes
 * its connection, because such a client may send the body or leave it out.
 */
export const expectContinue = (app: FastifyInstance): void => {
  app.addHook('preParsing', (request, reply, payload, done) =>
    done(null, awaitsContinue(request.raw) ? continuedBody(request.raw, reply.raw) : payload)
  )
}

/** Any other expectation has been refused before. HTTP/1.0 has none. */
const awaitsContinue = ({ headers, httpVersion }: IncomingMessage): boolean =>
  headers.expect !== undefined &&
  httpVersion === '1.1' &&
  (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0)

const continuedBody = (request: IncomingMessage, response: ServerResponse): Readable => {
  let begun = false
  const begin = (): void => {
    begun = true
    if (!response.headersSent) response.writeContinue()
    request.on('data', (chunk: Buffer) => {
      if (!body.push(chunk)) request.pause()
    })
    request.on('end', () => body.push(null))
    request.on('error', (error) => body.destroy(error))
  }
  const body = new Readable({
    read() {
      if (begun) request.resume()
      else begin()
    }
  })
  return body
}
