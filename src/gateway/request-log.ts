import type { FastifyRequest } from 'fastify'
import type { LineWriter } from '../shared/logger.js'
import type { AnswerListener } from './answered.js'
import { routeLabel } from './metrics.js'
import { withoutPathSecret } from './path-secret.js'

/** One line per request, without its query and headers: those carry secrets. */
export const logRequests =
  (write: LineWriter): AnswerListener =>
  (request, { status, cutShort, ms }) => {
    // Ids, methods and addresses were checked before they got here, and routes are our own: nothing in them needs escaping.
    const what = `"requestId":"${request.id}","method":"${request.method}","path":${loggablePath(request)}`
    const route = `"route":"${routeLabel(request)}"`
    // Not decorated where the router refuses the request before any hook runs.
    const code = request.refusalCode ? `,"code":"${request.refusalCode}"` : ''
    const tenths = Math.round(ms * 10)
    const how = `"status":${status},"ms":${Math.trunc(tenths / 10)}.${tenths % 10},"ip":"${request.clientAddress}"`
    write(`${what},${route},${how}${code}${cutShort ? ',"cutShort":true' : ''},"msg":"request"`)
  }

const MAX_PATH_CHARACTERS = 256

/** As JSON. A path with one reading has no character that JSON escapes; of one that was refused, only what was sent is known. */
const loggablePath = ({ path, raw }: FastifyRequest): string =>
  path ? `"${shortened(path)}"` : JSON.stringify(shortened((raw.url ?? '').split('?', 1).join('')))

const shortened = (path: string): string => withoutPathSecret(path).slice(0, MAX_PATH_CHARACTERS)
