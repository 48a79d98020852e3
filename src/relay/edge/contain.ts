import type { ServerResponse } from 'node:http'
import type { Context } from '../core/context.js'
import { answer } from './http-answer.js'

/** Unexpected errors of requests are logged and counted here. */
export type FailureParts = Pick<Context, 'log' | 'watch'>

export const reportFailure = ({ log, watch }: FailureParts, error: unknown): void => {
  watch.unexpectedError('http')
  log.error({ err: error, source: 'http' }, 'request failed')
}

/** An unexpected error fails one request: it is answered with 500, or broken off where the answer has begun. */
export const failRequest = (parts: FailureParts, response: ServerResponse, error: unknown): void => {
  reportFailure(parts, error)
  if (response.headersSent) response.destroy()
  else answer(response, 500, '', ['Connection', 'close'])
}

/** Runs what handles a request, and fails the request where that fails. Never rejects. */
export const containRequest = async (
  parts: FailureParts,
  response: ServerResponse,
  work: () => Promise<void>
): Promise<void> => {
  try {
    await work()
  } catch (error) {
    failRequest(parts, response, error)
  }
}
