import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import fp from 'fastify-plugin'
import { requestBody } from './request-body.js'

/**
 * Sends `100 Continue` when the body is first read: after every check that does not need the body, and after the wait for
 * a backend connection. A request that is rejected before that is not asked for its body, and Node closes its connection,
 * because the client may or may not send the body.
 */
export const expectContinue = fp(
  async (app) => {
    serveExpectations(app.server)
    app.addHook('preParsing', ({ raw }, reply, payload, done) => {
      const sendContinue = (): void => {
        if (!reply.raw.headersSent) reply.raw.writeContinue()
      }
      done(null, awaitsContinue(raw) ? requestBody(raw, sendContinue) : payload)
    })
  },
  { name: 'expect-continue', fastify: '5.x' }
)

/** Node reports requests with an expectation by other events. `canonical-path.ts` rejects those that are not supported. */
const serveExpectations = (server: Server): void => {
  const serve = (request: IncomingMessage, response: ServerResponse): void =>
    void server.emit('request', request, response)
  server.on('checkContinue', serve).on('checkExpectation', serve)
}

// Node joins repeated headers with a comma.
const CONTINUE = /^100-continue(?:, 100-continue)*$/i

/** HTTP/1.0 has no expectations: the header is ignored. */
export const isSupportedExpectation = ({ headers, httpVersion }: IncomingMessage): boolean =>
  headers.expect === undefined || httpVersion === '1.0' || CONTINUE.test(headers.expect)

const awaitsContinue = ({ headers, httpVersion }: IncomingMessage): boolean =>
  headers.expect !== undefined &&
  httpVersion === '1.1' &&
  (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0)
