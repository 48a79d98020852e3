import type { FastifyReply, FastifyRequest } from 'fastify'
import type { OpenReplies } from './open-replies.js'
import { onceClosed } from './response-close.js'

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
