import { type Backend, backendRefusal } from '../proxy/backend.js'
import { EXCHANGE_SECRET_HEADER } from '../proxy/request-headers.js'
import { turn, wholeBody } from '../session/backend-call.js'
import { isRefusal, readLoginAnswer, type Session } from '../session/session-answer.js'
import type { Identity } from './identity.js'

/** What the backend says to somebody whom the provider vouches for. */
export type AccountLogin =
  | { readonly kind: 'session'; readonly session: Session }
  | { readonly kind: 'no-account'; readonly status: number }
  /** No word about the account: the backend is away, too busy, or said something that makes no sense. */
  | { readonly kind: 'no-answer'; readonly reason: string }

export interface LoginCaller {
  readonly requestId: string
  readonly clientAddress: string
}

export type AskForAccount = (identity: Identity, caller: LoginCaller) => Promise<AccountLogin>

export interface AccountLoginParts {
  readonly backend: Backend
  readonly exchangeSecret: string | null
  readonly now: () => number
}

const LOGIN_PATH = '/api/auth/login'

/** Somebody waits for a page meanwhile. */
const TIMEOUT_MS = 5_000

// Said by who is too busy to look, not by who has looked.
const NOT_NOW: ReadonlySet<number> = new Set([408, 425, 429])

/** Asks the backend for the session of an account. Never throws: who asks goes on either way. */
export const accountLogin =
  ({ backend, exchangeSecret, now }: AccountLoginParts): AskForAccount =>
  async ({ email, name, groups }, { requestId, clientAddress }) => {
    const timeout = Math.min(TIMEOUT_MS, backend.timeoutMs)
    const signal = AbortSignal.timeout(timeout)
    try {
      const { connection, leave } = await turn(backend.slots, signal)
      try {
        const { statusCode, body } = await connection.request({
          method: 'POST',
          path: `${backend.pathPrefix}${LOGIN_PATH}`,
          headers: {
            accept: 'application/json',
            'accept-encoding': 'identity',
            'content-type': 'application/json',
            'x-forwarded-for': clientAddress,
            'x-request-id': requestId,
            ...(exchangeSecret !== null && { [EXCHANGE_SECRET_HEADER]: exchangeSecret })
          },
          body: JSON.stringify({ email, name, okta: true, groups }),
          signal
        })
        return read(statusCode, await wholeBody(body), now())
      } finally {
        leave()
      }
    } catch (error) {
      const { cause, code } = backendRefusal(error)
      return { kind: 'no-answer', reason: cause instanceof Error ? cause.message : code }
    }
  }

const read = (status: number, body: Buffer, now: number): AccountLogin => {
  if (status >= 500 || NOT_NOW.has(status) || status < 200) return { kind: 'no-answer', reason: `status ${status}` }
  if (status >= 400) return { kind: 'no-account', status }
  const answer = jsonOf(body)
  if (isRefusal(answer)) return { kind: 'no-account', status }
  if (status >= 300) return { kind: 'no-answer', reason: `status ${status}` }
  const { session, missing } = readLoginAnswer(answer, now)
  return session === null
    ? { kind: 'no-answer', reason: `status ${status}, login response without ${missing}` }
    : { kind: 'session', session }
}

const jsonOf = (body: Buffer): unknown => {
  try {
    return JSON.parse(body.toString())
  } catch {
    return null
  }
}
