import type { FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { GatewayError } from '../errors.js'
import { readBody } from '../proxy/backend-call.js'
import { type Backend, toBackendError } from '../proxy/backend-pool.js'
import { acquireSlot } from '../proxy/capacity.js'
import { EXCHANGE_SECRET_HEADER } from '../proxy/request-headers.js'
import type { AppSession } from '../session/app-session.js'
import { isRejectedLogin, type LoginFields, readLoginResponse } from '../session/login-response.js'
import type { ExchangeResult } from './exchange-result.js'
import type { Identity } from './identity.js'

/** Logs an identity in at the backend. Never throws, because the request continues either way. */
export type AccountLogin = (identity: Identity, request: FastifyRequest) => Promise<ExchangeResult>

export interface AccountLoginOptions {
  readonly log: Logger
  readonly backend: Backend
  readonly exchangeSecret: string | null
  readonly exchangeField: string
  readonly loginFields: LoginFields
  readonly now: () => number
}

const BACKEND_LOGIN_PATH = '/api/auth/login'

/** The user waits for a page meanwhile. */
const TIMEOUT_MS = 5_000

export const accountLogin = (options: AccountLoginOptions): AccountLogin => {
  const { log, loginFields, now } = options
  return async (identity, request) => {
    const facts = { requestId: request.id, subject: identity.subject }
    try {
      const { status, body } = await postLogin(options, identity, request)
      if (isTransient(status)) throw new Error(`status ${status}`)
      const json = parseJson(body)
      if (status >= 400 || isRejectedLogin(json)) {
        log.warn({ ...facts, status }, 'no account for provider session')
        return { kind: 'no_account' }
      }
      return { kind: 'success', session: sessionIn(status, json, loginFields, now()) }
    } catch (error) {
      log.error({ ...facts, reason: reasonOf(error) }, 'account login for provider session failed')
      return { kind: 'backend_down' }
    }
  }
}

const postLogin = async (
  { backend, exchangeSecret, exchangeField }: AccountLoginOptions,
  { email, name, groups }: Identity,
  { id: requestId, clientAddress }: FastifyRequest
): Promise<{ readonly status: number; readonly body: Buffer }> => {
  const signal = AbortSignal.timeout(Math.min(TIMEOUT_MS, backend.timeoutMs))
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
    return { status: statusCode, body: await readBody(body) }
  } catch (error) {
    throw toBackendError(error)
  } finally {
    release()
  }
}

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
  return error instanceof Error ? error.message : String(error)
}

const parseJson = (body: Buffer): unknown => {
  try {
    return JSON.parse(body.toString())
  } catch {
    return null
  }
}
