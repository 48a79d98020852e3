import type { FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { messageOf } from '../../shared/error-message.js'
import { jsonOrUndefined } from '../../shared/json-or-undefined.js'
import { GatewayError } from '../errors.js'
import type { BackendCall, CallBackend } from '../proxy/backend-call.js'
import type { Backend } from '../proxy/backend-pool.js'
import { EXCHANGE_SECRET_HEADER } from '../proxy/request-headers.js'
import type { AppSession } from '../session/app-session.js'
import { isRejectedLogin, type LoginFields, readLoginResponse } from '../session/login-response.js'
import type { ExchangeResult } from './exchange-result.js'
import type { Identity } from './identity.js'
import { DEFAULT_PROVIDER } from './providers-file.js'

/** Logs an identity in at the backend. Never throws, because the request continues either way. */
export type AccountLogin = (identity: Identity, provider: string, request: FastifyRequest) => Promise<ExchangeResult>

export interface AccountLoginOptions {
  readonly log: Logger
  readonly backend: Pick<Backend, 'timeoutMs'>
  readonly callBackend: CallBackend
  readonly exchangeSecret: string | null
  readonly exchangeField: string
  readonly loginFields: LoginFields
  readonly now: () => number
}

const ACCOUNT_LOGIN_PATH = '/api/auth/login'

/** The user waits for a page meanwhile. */
const TIMEOUT_MS = 5_000

export const accountLogin = (options: AccountLoginOptions): AccountLogin => {
  const { log, callBackend, loginFields, now } = options
  return async (identity, provider, request) => {
    const facts = {
      requestId: request.id,
      subject: identity.subject,
      ...(provider !== DEFAULT_PROVIDER && { providerId: provider })
    }
    const requestedAtMs = now()
    try {
      const { status, body } = await callBackend(loginCall(options, identity, provider, request))
      if (isTransient(status)) throw new Error(`status ${status}`)
      const json = jsonOrUndefined(body.toString())
      if (status >= 400 || isRejectedLogin(json)) {
        log.warn({ ...facts, status }, 'no account for provider session')
        return { kind: 'no_account' }
      }
      return { kind: 'success', session: { ...sessionIn(status, json, loginFields, now()), requestedAtMs } }
    } catch (error) {
      log.error({ ...facts, reason: reasonOf(error) }, 'account login for provider session failed')
      return { kind: 'backend_down' }
    }
  }
}

/** Not bound to the request's response: other requests may wait for the same login. */
const loginCall = (
  { backend, exchangeSecret, exchangeField }: AccountLoginOptions,
  { email, name, groups }: Identity,
  provider: string,
  request: FastifyRequest
): BackendCall => ({
  request,
  path: ACCOUNT_LOGIN_PATH,
  route: ACCOUNT_LOGIN_PATH,
  headers: (span) => [
    'accept',
    'application/json',
    'content-type',
    'application/json',
    'x-forwarded-for',
    request.clientAddress,
    'x-request-id',
    request.id,
    ...(exchangeSecret === null ? [] : [EXCHANGE_SECRET_HEADER, exchangeSecret]),
    ...(span?.headers ?? [])
  ],
  // The provider of `OIDC_ISSUER` is not named: backends may have been written for it alone.
  body: JSON.stringify({
    email,
    name,
    [exchangeField]: true,
    groups,
    ...(provider !== DEFAULT_PROVIDER && { provider })
  }),
  anonymous: false,
  timeoutMs: Math.min(TIMEOUT_MS, backend.timeoutMs)
})

const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([408, 425, 429])

/** Whether a status says nothing about the account. */
const isTransient = (status: number): boolean => status >= 500 || status < 200 || RETRYABLE_STATUSES.has(status)

const sessionIn = (status: number, json: unknown, fields: LoginFields, now: number): AppSession => {
  if (status >= 300) throw new Error(`status ${status}`)
  const { session, missing } = readLoginResponse(json, now, fields)
  if (session === null) throw new Error(`status ${status}, login response without ${missing}`)
  return session
}

/** The cause of an error of the gateway, which has a message for users. */
const reasonOf = (error: unknown): string => {
  if (error instanceof GatewayError) return error.cause instanceof Error ? error.cause.message : error.code
  return messageOf(error)
}
