import type { FastifyBaseLogger, FastifyRequest } from 'fastify'
import type { AnswerListener } from './answered.js'
import { withoutPathSecret } from './path-secret.js'

/** One line per request, without its query and headers: those carry secrets. */
export const logRequests =
  (lines: Pick<FastifyBaseLogger, 'info'>): AnswerListener =>
  (request, { status, cutShort, ms }) => {
    const line = {
      requestId: request.id,
      method: request.method,
      path: loggablePath(request),
      status,
      ms: Math.round(ms * 10) / 10,
      ip: request.clientAddress
    }
    lines.info(cutShort ? { ...line, cutShort } : line, 'request')
  }

const MAX_PATH_CHARACTERS = 256

const loggablePath = ({ path, raw }: FastifyRequest): string =>
  // A path that was refused as ambiguous is known only as it was sent.
  withoutPathSecret(path || (raw.url ?? '').split('?', 1).join('')).slice(0, MAX_PATH_CHARACTERS)
