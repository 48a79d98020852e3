import type { FastifyRequest } from 'fastify'
import type { LineWriter } from '../shared/logger.js'
import type { AnswerListener } from './answered.js'
import { withoutPathSecret } from './path-secret.js'

/** One line per request, without its query and headers: those carry secrets. */
export const logRequests =
  (write: LineWriter): AnswerListener =>
  (request, { status, cutShort, ms }) => {
    // Ids, methods and addresses were checked before they got here: nothing in them needs escaping in JSON.
    const what = `"requestId":"${request.id}","method":"${request.method}","path":${loggablePath(request)}`
    const tenths = Math.round(ms * 10)
    const how = `"status":${status},"ms":${Math.trunc(tenths / 10)}.${tenths % 10},"ip":"${request.clientAddress}"`
    write(`${what},${how}${cutShort ? ',"cutShort":true' : ''},"msg":"request"`)
  }

const MAX_PATH_CHARACTERS = 256

/** As JSON. A path with one reading has no character that JSON escapes; of one that was refused, only what was sent is known. */
const loggablePath = ({ path, raw }: FastifyRequest): string =>
  path ? `"${shortened(path)}"` : JSON.stringify(shortened((raw.url ?? '').split('?', 1).join('')))

const shortened = (path: string): string => withoutPathSecret(path).slice(0, MAX_PATH_CHARACTERS)
