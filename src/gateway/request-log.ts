import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

// What other servers write down for a client that did not wait for its answer.
const CLIENT_LEFT = 499

type Lines = Pick<FastifyBaseLogger, 'info'>

/** One line per request, without its query and headers: those carry secrets. */
export const logRequests = (app: FastifyInstance, lines: Lines): void => {
  app.addHook('onResponse', (request, reply, done) => {
    logRequest(lines, request, reply, { status: reply.statusCode })
    done()
  })

  // `onResponse` never comes for an answer that is cut short, by whichever side.
  app.addHook('onRequest', (request, reply, done) => {
    const { raw: response } = reply
    response.once('close', () => {
      if (response.writableFinished) return
      const status = response.headersSent ? response.statusCode : CLIENT_LEFT
      logRequest(lines, request, reply, { status, cutShort: true })
    })
    done()
  })
}

const logRequest = (lines: Lines, request: FastifyRequest, reply: FastifyReply, outcome: object): void => {
  const { id: requestId, method, clientAddress: ip } = request
  const ms = Math.round(reply.elapsedTime * 10) / 10
  lines.info({ requestId, method, path: loggablePath(request), ...outcome, ms, ip }, 'request')
}

const MAX_PATH_CHARACTERS = 256

const loggablePath = ({ path, raw }: FastifyRequest): string =>
  // A path that was refused as ambiguous is known only as it was sent.
  withoutSecret(path || (raw.url ?? '').split('?', 1).join('')).slice(0, MAX_PATH_CHARACTERS)

// An onboarding token stands in the path itself: who has the log must not have the token, however the path is spelt.
const PHONE_BEACON = /(phone-beacon\b)(?!\/(?:onboarding-token|complete-enrollment|irk-records)$).+$/i

const withoutSecret = (path: string): string => path.replace(PHONE_BEACON, '$1/…')
