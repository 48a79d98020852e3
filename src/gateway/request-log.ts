import type { FastifyInstance, FastifyRequest } from 'fastify'
import { clientAddress } from './request-context.js'

/** One line per request, without its query and headers: those carry secrets. */
export const logRequests = (app: FastifyInstance): void => {
  app.addHook('onResponse', (request, reply, done) => {
    request.log.info(
      {
        method: request.method,
        path: loggablePath(request),
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime * 10) / 10,
        ip: clientAddress(request)
      },
      'request'
    )
    done()
  })
}

const MAX_PATH_CHARACTERS = 256

const loggablePath = ({ path, raw }: FastifyRequest): string =>
  // A path that was refused as ambiguous is known only as it was sent.
  withoutSecret(path || (raw.url ?? '').split('?', 1).join('')).slice(0, MAX_PATH_CHARACTERS)

/** An onboarding token stands in the path itself: who has the log must not have the token. */
const withoutSecret = (path: string): string => path.replace(/^(\/api\/phone-beacon\/)[^/]{16,}/, '$1…')
