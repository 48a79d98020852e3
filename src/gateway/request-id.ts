import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

// What somebody may choose for our logs, and no more than that.
const SANE_ID = /^[A-Za-z0-9._-]{1,64}$/

/** The id that a proxy or client gave the request, where it is sane; else a new one. */
export const requestId = ({ headers }: Pick<IncomingMessage, 'headers'>): string => {
  const given = headers['x-request-id']
  return typeof given === 'string' && SANE_ID.test(given) ? given : randomUUID()
}
