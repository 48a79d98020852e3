import type { FastifyRequest } from 'fastify'
import type { LineWriter } from '../shared/logger.js'
import type { AnswerListener } from './answered.js'
import { withoutPathSecret } from './path-secret.js'

/** One line per request, without its query and headers: those carry secrets. */
export const logRequests =
  (write: LineWriter): AnswerListener =>
  (request, { status, cutShort, ms }) => {
    // Only the path can hold what JSON must escape: ids, methods and addresses were checked before they got here.
    const path = JSON.stringify(loggablePath(request))
    const what = `"requestId":"${request.id}","method":"${request.method}","path":${path},"status":${status}`
    const how = `"ms":${Math.round(ms * 10) / 10},"ip":"${request.clientAddress}"${cutShort ? ',"cutShort":true' : ''}`
    write(`${what},${how},"msg":"request"`)
  }

const MAX_PATH_CHARACTERS = 256

const loggablePath = ({ path, raw }: FastifyRequest): string =>
  // A path that was refused as ambiguous is known only as it was sent.
  withoutPathSecret(path || (raw.url ?? '').split('?', 1).join('')).slice(0, MAX_PATH_CHARACTERS)
