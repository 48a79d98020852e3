import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

// What other servers write down for a client that did not wait for its answer.
const CLIENT_LEFT = 499

/** One line per request, without its query and headers: those carry secrets. */
export const logRequests = (app: FastifyInstance, lines: Pick<FastifyBaseLogger, 'info'>): void => {
  app.addHook('onRequest', (request, reply, done) => {
    const start = performance.now()
    // Asked for now: a request whose body was read to its end no longer knows its socket when the answer is out.
    const ip = request.clientAddress
    // Not in `onResponse`, which never comes for an answer that is cut short, by whichever side.
    reply.raw.once('close', () => {
      lines.info(
        {
          requestId: request.id,
          method: request.method,
          path: loggablePath(request),
          ...outcome(reply),
          ms: Math.round((performance.now() - start) * 10) / 10,
          ip
        },
        'request'
      )
    })
    done()
  })
}

const outcome = ({ raw: response, statusCode }: FastifyReply): object => {
  if (response.writableFinished) return { status: response.statusCode }
  return { status: response.headersSent ? statusCode : CLIENT_LEFT, cutShort: true }
}

const MAX_PATH_CHARACTERS = 256

const loggablePath = ({ path, raw }: FastifyRequest): string =>
  // A path that was refused as ambiguous is known only as it was sent.
  withoutSecret(path || (raw.url ?? '').split('?', 1).join('')).slice(0, MAX_PATH_CHARACTERS)

// An onboarding token stands in the path itself: who has the log must not have the token, however the path is spelt.
const PHONE_BEACON = /(phone-beacon\b)(?!\/(?:onboarding-token|complete-enrollment|irk-records)$).+$/i

const withoutSecret = (path: string): string => path.replace(PHONE_BEACON, '$1/…')
