import { readBody } from '../proxy/backend-call.js'
import { type Backend, toBackendError } from '../proxy/backend-pool.js'
import { acquireSlot } from '../proxy/capacity.js'
import { EXCHANGE_SECRET_HEADER } from '../proxy/request-headers.js'
import type { AppSession } from '../session/app-session.js'
import { isRejectedLogin, type LoginFields, readLoginResponse } from '../session/login-response.js'
import type { Identity } from './identity.js'

/** The backend's response to a login on behalf of a provider session. Gateways share it through Redis. */
export type AccountLoginResult =
  | { readonly kind: 'session'; readonly session: AppSession }
  | { readonly kind: 'no-account'; readonly status: number }
  /** Not known whether there is an account: the backend is unavailable, overloaded or sent an unusable response. */
  | { readonly kind: 'no-answer'; readonly reason: string }

export interface AccountLoginCaller {
  readonly requestId: string
  readonly clientAddress: string
}

export type AccountLogin = (identity: Identity, caller: AccountLoginCaller) => Promise<AccountLoginResult>

export interface AccountLoginOptions {
  readonly backend: Backend
  readonly exchangeSecret: string | null
  readonly exchangeField: string
  readonly loginFields: LoginFields
  readonly now: () => number
}

const BACKEND_LOGIN_PATH = '/api/auth/login'

/** The user waits for a page meanwhile. */
const TIMEOUT_MS = 5_000

/** Retryable statuses; they say nothing about the account. */
const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([408, 425, 429])

/** Logs an identity in at the backend. Never throws, because the caller's request continues either way. */
export const accountLogin =
  ({ backend, exchangeSecret, exchangeField, loginFields, now }: AccountLoginOptions): AccountLogin =>
  async ({ email, name, groups }, { requestId, clientAddress }) => {
    const signal = AbortSignal.timeout(Math.min(TIMEOUT_MS, backend.timeoutMs))
    try {
      const { release } = await acquireSlot(backend.capacity, signal)
      try {
        const { statusCode, body } = await backend.pool.request({
          method: 'POST',
          path: backend.pathOf(BACKEND_LOGIN_PATH),
          headers: {
            accept: 'application/json',
            'accept-encoding': 'identity',
            'content-type': 'application/json',
            'x-forwarded-for': clientAddress,
            'x-request-id': requestId,
            ...(exchangeSecret !== null && { [EXCHANGE_SECRET_HEADER]: exchangeSecret })
          },
          body: JSON.stringify({ email, name, [exchangeField]: true, groups }),
          signal
        })
        return resultOf(statusCode, await readBody(body), loginFields, now())
      } finally {
        release()
      }
    } catch (error) {
      const { cause, code } = toBackendError(error)
      return { kind: 'no-answer', reason: cause instanceof Error ? cause.message : code }
    }
  }

const resultOf = (status: number, body: Buffer, fields: LoginFields, now: number): AccountLoginResult => {
  if (status >= 500 || RETRYABLE_STATUSES.has(status) || status < 200)
    return { kind: 'no-answer', reason: `status ${status}` }
  if (status >= 400) return { kind: 'no-account', status }
  const json = parseJson(body)
  if (isRejectedLogin(json)) return { kind: 'no-account', status }
  if (status >= 300) return { kind: 'no-answer', reason: `status ${status}` }
  const { session, missing } = readLoginResponse(json, now, fields)
  return session === null
    ? { kind: 'no-answer', reason: `status ${status}, login response without ${missing}` }
    : { kind: 'session', session }
}

const parseJson = (body: Buffer): unknown => {
  try {
    return JSON.parse(body.toString())
  } catch {
    return null
  }
}
