import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { routeLabel } from '../metrics.js'
import { onceClosed } from '../request-context.js'
import type { OpenReplies } from './slow-clients.js'

// An onboarding token stands in the path itself: who has a log must not have the token, however the path is spelt.
const PHONE_BEACON = /(phone-beacon\b)(?!\/(?:onboarding-token|complete-enrollment|irk-records)$).+$/i

/** A path as it may be written down. */
export const withoutPathSecret = (path: string): string => path.replace(PHONE_BEACON, '$1/…')

/** One line per request, without its query and headers: those carry secrets. */
export const logRequests =
  (log: Logger): AnswerListener =>
  (request, { status, cutShort, ms }) => {
    const { id: requestId, method, clientAddress: ip, errorCode } = request
    const route = routeLabel(request)
    const line = { requestId, method, path: loggablePath(request), route, status, ms: Math.round(ms * 10) / 10, ip }
    // Both are rare: most requests are answered with what the backend says.
    const code = errorCode ? { code: errorCode } : null
    const rest = cutShort ? { cutShort } : null
    log.info(code === null && rest === null ? line : { ...line, ...code, ...rest }, 'request')
  }

const MAX_PATH_CHARACTERS = 256

/** Of a path that was refused, only what was sent is known. */
const loggablePath = ({ path, raw }: FastifyRequest): string =>
  shortened(path ? path : (raw.url ?? '').split('?', 1).join(''))

const shortened = (path: string): string => withoutPathSecret(path).slice(0, MAX_PATH_CHARACTERS)

/** What became of a request. */
export interface Outcome {
  readonly status: number
  /** By whichever side: the client may have left, or the backend failed in the middle of its answer. */
  readonly cutShort: boolean
  readonly ms: number
}

export type AnswerListener = (request: FastifyRequest, outcome: Outcome) => void

// What other servers write down for a client that did not wait for its answer.
const CLIENT_LEFT = 499

/**
 * Tells all listeners what became of a request, once, and keeps its reply among the open ones until then. To be called for
 * each request before anything can refuse it. Not by `onResponse`: that never comes for an answer that is cut short.
 */
export const answerWatch =
  (listeners: readonly AnswerListener[], open: OpenReplies) =>
  (request: FastifyRequest, reply: FastifyReply): void => {
    const { raw: response } = reply
    const start = performance.now()
    open.add(reply)
    onceClosed(response, () => {
      open.delete(reply)
      // A response that was destroyed with bytes still unsent counts as finished for Node.
      const cutShort = !response.writableFinished || response.errored !== null
      const status = cutShort && !response.headersSent ? CLIENT_LEFT : response.statusCode
      const outcome: Outcome = { status, cutShort, ms: performance.now() - start }
      for (const listener of listeners) listener(request, outcome)
    })
  }
