import type { FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { AnswerListener } from './answered.js'
import { routeLabel } from './metrics.js'
import { withoutPathSecret } from './path-secret.js'

/** One line per request, without its query and headers: those carry secrets. */
export const logRequests =
  (log: Logger): AnswerListener =>
  (request, { status, cutShort, ms }) => {
    const { id: requestId, method, clientAddress: ip, refusalCode } = request
    const route = routeLabel(request)
    const line = { requestId, method, path: loggablePath(request), route, status, ms: Math.round(ms * 10) / 10, ip }
    // Both are rare: most requests are answered with what the backend says.
    const code = refusalCode ? { code: refusalCode } : null
    const rest = cutShort ? { cutShort } : null
    log.info(code === null && rest === null ? line : { ...line, ...code, ...rest }, 'request')
  }

const MAX_PATH_CHARACTERS = 256

/** Of a path that was refused, only what was sent is known. */
const loggablePath = ({ path, raw }: FastifyRequest): string =>
  shortened(path ? path : (raw.url ?? '').split('?', 1).join(''))

const shortened = (path: string): string => withoutPathSecret(path).slice(0, MAX_PATH_CHARACTERS)
