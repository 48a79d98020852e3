import { createHmac, hkdfSync } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { sameSecret } from '../../shared/same-secret.js'
import type { SessionExchange } from '../plugins/session-exchange.js'
import { type Backend, toBackendError } from '../proxy/backend.js'
import { readBody } from '../proxy/backend-call.js'
import { acquireSlot } from '../proxy/capacity.js'
import { EXCHANGE_SECRET_HEADER } from '../proxy/request-headers.js'
import {
  isRefusal,
  readLoginAnswer,
  type Session,
  type SessionCookies,
  type StartSessionParts,
  startSession
} from '../session/app-session.js'
import { cookieValues } from '../session/cookies.js'
import type { Identity } from './identity.js'
import { type ProviderSession, type ProviderSessions, type SessionRefreshParts, sessionRefresh } from './session.js'

/** What became of a provider session that was to become an app session. */
export type Exchanged =
  | { readonly kind: 'session'; readonly token: string }
  /** There is no account; nobody can say at the moment; the provider no longer vouches for it. */
  | { readonly kind: 'no-account' | 'no-answer' | 'ended' }

// As the numbers call them.
const RESULTS: Readonly<Record<Exchanged['kind'], ExchangeResult>> = {
  session: 'success',
  'no-account': 'no_account',
  'no-answer': 'backend_down',
  ended: 'provider_ended'
}

export interface ExchangeParts extends SessionRefreshParts {
  readonly ask: AskForAccount
  readonly count: (result: ExchangeResult) => void
  readonly cookies: SessionCookies
  readonly tokens: StartSessionParts['tokens']
  readonly sessions: ProviderSessions
  /** Marks whose exchange failed; the newest of the secrets. */
  readonly secret: string
}

/** One exchange as all who wait for it see it. */
interface Outcome {
  readonly login: AccountLogin | { readonly kind: 'ended' }
  /** Where the provider had news of the person. */
  readonly identity: Identity | null
}

// Who is on the way to sign in or out gets no session on the side.
const LEFT_ALONE = /^\/(?:auth\/oidc\/|api\/auth\/(?:login|backend-login|logout)$)/

/** Fifth in the chain: whoever holds a provider session and no app session gets one, if there is an account. */
export class ProviderExchange implements SessionExchange {
  readonly #parts: ExchangeParts
  readonly #refreshed: ReturnType<typeof sessionRefresh>
  readonly #markerKey: Uint8Array

  constructor(parts: ExchangeParts) {
    this.#parts = parts
    this.#refreshed = sessionRefresh(parts)
    this.#markerKey = new Uint8Array(hkdfSync('sha256', parts.secret, '', 'gatehouse oidc failure marker v1', 32))
  }

  async exchange(request: FastifyRequest, reply: FastifyReply): Promise<string | null> {
    const { sessions, memory, log } = this.#parts
    if (LEFT_ALONE.test(request.path) || !sessions.isCarriedBy(request)) return null
    try {
      const session = await sessions.of(request)
      if (session === null || memory.hasEnded(session)) {
        sessions.clear(reply)
        return null
      }
      // First, so that whatever the exchange says of the session is the last word.
      await sessions.renew(request, reply)
      const exchanged = await this.run(request, reply, session)
      return exchanged.kind === 'session' ? exchanged.token : null
    } catch (error) {
      // The request goes on, whatever happened here.
      log.error({ requestId: request.id, err: error }, 'a provider session could not be exchanged')
      return null
    }
  }

  /** With the cookies that belong to it. Asks nobody while the browser carries the marker of an exchange that failed. */
  async run(request: FastifyRequest, reply: FastifyReply, session: ProviderSession): Promise<Exchanged> {
    const { memory, sessions, cookies, tokens, log } = this.#parts
    if (this.#isMarked(request, session)) return { kind: 'no-account' }
    const { id: requestId, clientAddress } = request
    const { login, identity } = await memory.once(session.id, () =>
      this.#perform(session, { requestId, clientAddress })
    )

    reply.header('cache-control', 'no-store')
    // Somebody may have signed out meanwhile.
    if (login.kind === 'ended' || memory.hasEnded(session)) {
      sessions.clear(reply)
      return { kind: 'ended' }
    }
    if (identity !== null) await sessions.save(reply, { ...session, ...identity })
    if (login.kind === 'no-account') cookies.markFailed(reply, this.#marker(session))
    if (login.kind !== 'session') return { kind: login.kind }
    // The time that it has left is less for who comes late; the token itself says when it ends.
    return startSession({ cookies, tokens, log, viaProvider: true }, reply, login.session)
      ? { kind: 'session', token: login.session.token }
      : { kind: 'no-answer' }
  }

  async #perform(session: ProviderSession, caller: { requestId: string; clientAddress: string }): Promise<Outcome> {
    const { ask, count, log } = this.#parts
    const news = await this.#refreshed(session, caller.requestId)
    const login = news === 'ended' ? ({ kind: 'ended' } as const) : await ask(news ?? session, caller)
    count(RESULTS[login.kind])
    const facts = { requestId: caller.requestId, subject: session.subject }
    if (login.kind === 'no-account')
      log.warn({ ...facts, status: login.status }, 'there is no account for a provider session')
    if (login.kind === 'no-answer')
      log.error(
        { ...facts, reason: login.reason },
        'the backend did not answer whether a provider session has an account'
      )
    return { login, identity: news === 'ended' ? null : news }
  }

  #isMarked({ headers }: FastifyRequest, session: ProviderSession): boolean {
    const expected = this.#marker(session)
    return cookieValues(headers.cookie, 'oidc_exchange_failed').some((value) => sameSecret(value, expected))
  }

  /** Names the subject to us alone: signing in as somebody else is not held up. */
  #marker({ subject }: ProviderSession): string {
    return createHmac('sha256', this.#markerKey).update(subject).digest('base64url').slice(0, 22)
  }
}

/** What becomes of exchanges, as the numbers call it. */
export const EXCHANGE_RESULTS = ['success', 'no_account', 'backend_down', 'provider_ended'] as const

export type ExchangeResult = (typeof EXCHANGE_RESULTS)[number]

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
      const { release } = await acquireSlot(backend.capacity, signal)
      try {
        const { statusCode, body } = await backend.pool.request({
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
        return read(statusCode, await readBody(body), now())
      } finally {
        release()
      }
    } catch (error) {
      const { cause, code } = toBackendError(error)
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
