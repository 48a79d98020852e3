import type { SerializeOptions } from '@fastify/cookie'
import { Value } from '@sinclair/typebox/value'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { type AuthUser, AuthUserSchema, MAX_DISPLAY_NAME_CHARACTERS } from '../../../schemas/session.js'
import { type AppTokenVerifier, decodeClaims } from '../../shared/app-token.js'
import { cookieOptions, cookieValues, setCookie } from './cookies.js'

export type SessionCookie =
  | { readonly kind: 'absent' }
  | { readonly kind: 'token'; readonly token: string }
  /** There, but nothing that could be forwarded: two different values, control characters. */
  | { readonly kind: 'unusable' }

const ABSENT: SessionCookie = { kind: 'absent' }
const UNUSABLE: SessionCookie = { kind: 'unusable' }

// What may stand in a Bearer header, and so nothing that could end it and begin another.
const TOKEN = /^[A-Za-z0-9._~+/=-]+$/
const BEARER = /^bearer +([A-Za-z0-9._~+/=-]+)$/i

// A client that lost its token sends these words in its place.
const isPlaceholder = (token: string): boolean => /^(?:null|undefined)$/i.test(token)

const isNoToken = (value: string): boolean => value === '' || isPlaceholder(value)

/** Whether a text can stand for a session: in the cookie, and in the header that it becomes. */
export const isUsableToken = (token: string): boolean => TOKEN.test(token) && !isPlaceholder(token)

/** Asked by several steps, and the same for all of them. */
export const sessionCookie = (request: FastifyRequest): SessionCookie => {
  request.sessionCookie ??= readSessionCookie(request)
  return request.sessionCookie
}

const readSessionCookie = (request: FastifyRequest): SessionCookie => {
  const [value, another] = cookieValues(request.headers.cookie, 'auth_token', isNoToken)
  if (value === undefined) return ABSENT
  if (another !== undefined || !isUsableToken(value)) return UNUSABLE
  return { kind: 'token', token: value }
}

/**
 * The Authorization header that goes to the backend: the cookie's token, where there is no cookie the client's own Bearer
 * header, else none. A cookie that is there but unusable does not open the way for the header.
 */
export const forwardedAuthorization = (request: FastifyRequest): string | undefined => {
  if (request.exchangedToken !== null) return `Bearer ${request.exchangedToken}`
  const cookie = sessionCookie(request)
  if (cookie.kind === 'token') return `Bearer ${cookie.token}`
  if (cookie.kind === 'unusable') return undefined
  const token = BEARER.exec(request.headers.authorization ?? '')?.[1]
  return token === undefined || isPlaceholder(token) ? undefined : `Bearer ${token}`
}

/** What a login at the backend amounts to. */
export interface Session {
  readonly token: string
  readonly user: AuthUser
  readonly permissions: readonly string[]
  readonly expiresAtMs: number
  /** From the moment that it was read, in whole seconds. */
  readonly lifetimeSeconds: number
}

/** The last moment that JavaScript can name, and so the last that a page can read. */
const END_OF_TIME_MS = 8.64e15

type Fields = Readonly<Record<string, unknown>>

export type LoginAnswer =
  | { readonly session: Session; readonly missing: null }
  /** Names the first field that a session needs and that is missing or unusable. */
  | { readonly session: null; readonly missing: string }

/** Reads a login answer `{ success: true, data: { token, user, expiresIn } }`. */
export const readLoginAnswer = (answer: unknown, now: number): LoginAnswer => {
  if (!isObject(answer)) return without('a JSON object')
  if (answer.success !== true) return without('success')
  if (!isObject(answer.data)) return without('data')
  const { token, user: userFields, permissions, expiresIn } = answer.data
  if (typeof token !== 'string' || !isUsableToken(token)) return without('data.token')

  const decoded = decodeClaims(token)
  const expiresAtMs = decoded?.expiresAtMs ?? (typeof expiresIn === 'number' ? now + expiresIn * 1000 : Number.NaN)
  if (!(expiresAtMs > now && expiresAtMs <= END_OF_TIME_MS))
    return without(decoded === null ? 'data.expiresIn' : 'a future exp in data.token')

  const user = isObject(userFields) ? userFields : {}
  const session: Session = {
    token,
    user: {
      userId: fitting('userId', user.userId ?? user.id),
      email: fitting('email', user.email),
      displayName: fitting('displayName', shortened(user.displayName ?? user.name)),
      role: fitting('role', user.role)
    },
    permissions: stringsOf(user.permissions) ?? stringsOf(permissions) ?? stringsOf(decoded?.claims.permissions) ?? [],
    expiresAtMs: Math.trunc(expiresAtMs),
    lifetimeSeconds: Math.floor((expiresAtMs - now) / 1000)
  }
  return { session, missing: null }
}

/** The session in a login answer, or null where there is none. */
export const sessionOf = (answer: unknown, now: number): Session | null => readLoginAnswer(answer, now).session

/** Whether a backend says in the body that it refuses the login. */
export const isRefusal = (answer: unknown): boolean => isObject(answer) && answer.success === false

const without = (missing: string): LoginAnswer => ({ session: null, missing })

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * What pages may rely on, or nothing: half an id or half a role would be another one. So the cookie stays small too;
 * browsers drop one that is not without a word.
 */
const fitting = <Field extends keyof AuthUser>(field: Field, value: unknown): AuthUser[Field] | null =>
  Value.Check(AuthUserSchema.properties[field], value) ? (value as AuthUser[Field]) : null

/** Half a name is still one. */
const shortened = (value: unknown): unknown =>
  typeof value === 'string' ? value.slice(0, MAX_DISPLAY_NAME_CHARACTERS) : value

const stringsOf = (value: unknown): readonly string[] | null =>
  Array.isArray(value) ? value.filter((entry): entry is string => typeof entry === 'string') : null

export interface StartSessionParts {
  readonly cookies: SessionCookies
  readonly tokens: AppTokenVerifier
  readonly log: Logger
  /** Whether an identity provider vouched for it. */
  readonly viaProvider?: boolean
}

/** Signs a browser in, and tells the operator what could be wrong with it. False where browsers would not keep it. */
export const startSession = (parts: StartSessionParts, reply: FastifyReply, session: Session): boolean => {
  const { cookies, tokens, log, viaProvider = false } = parts
  const requestId = reply.request.id
  if (!cookies.canHold(session)) {
    log.error({ requestId, characters: session.token.length }, "the backend's token does not fit into a cookie")
    return false
  }
  if (!cookies.set(reply, session, { viaProvider })) {
    log.warn({ requestId, permissions: session.permissions.length }, 'permissions do not fit into a cookie')
  }
  try {
    tokens.verify(session.token)
  } catch (error) {
    log.error({ requestId, err: error }, "the backend's token is not good here: is API_SECRET its TOKEN_SECRET?")
  }
  return true
}

/** Every cookie that a session is made of, or that stands in its way. */
export const SESSION_COOKIES: readonly string[] = [
  'auth_token',
  'auth_user',
  'auth_permissions',
  'auth_token_expiry',
  'auth_via_oidc',
  'csrf_token',
  'oidc_exchange_failed'
]

const FAILURE_SECONDS = 5 * 60

// Browsers drop a cookie whose name and value exceed 4096 bytes, without a word.
const MAX_COOKIE_BYTES = 4096
const MAX_VALUE_BYTES = 3800

/** Where a page asks for what did not fit into a cookie. */
const PERMISSIONS_ADDRESS = '/api/auth/backend-me'

export class SessionCookies {
  readonly #options: SerializeOptions

  constructor(config: { readonly secure: boolean }) {
    this.#options = cookieOptions(config)
  }

  /** Whether browsers keep its token; without that, the other cookies would be half a session. */
  canHold({ token }: Session): boolean {
    return 'auth_token'.length + encodeURIComponent(token).length <= MAX_COOKIE_BYTES
  }

  /** Puts a session on the reply. False where its permissions were too many for a cookie. */
  set(reply: FastifyReply, session: Session, { viaProvider = false } = {}): boolean {
    const { token, user, permissions, expiresAtMs, lifetimeSeconds } = session
    const readable = { ...this.#options, maxAge: lifetimeSeconds }
    const permissionText = JSON.stringify(permissions)
    const fits = encodeURIComponent(permissionText).length <= MAX_VALUE_BYTES

    setCookie(reply, 'auth_token', token, { ...readable, httpOnly: true })
    setCookie(reply, 'auth_user', JSON.stringify(user), readable)
    setCookie(reply, 'auth_token_expiry', String(expiresAtMs), readable)
    if (fits) setCookie(reply, 'auth_permissions', permissionText, readable)
    else {
      // Those of an earlier session must not be taken for this one's.
      this.#clear(reply, 'auth_permissions')
      reply.header('x-auth-permissions-at', PERMISSIONS_ADDRESS)
    }
    if (viaProvider) setCookie(reply, 'auth_via_oidc', 'true', readable)
    else this.#clear(reply, 'auth_via_oidc')
    this.#clear(reply, 'oidc_exchange_failed')
    return fits
  }

  /** Says that the provider session of this browser leads to no account, so that nobody asks again for a while. */
  markFailed(reply: FastifyReply, marker: string): void {
    setCookie(reply, 'oidc_exchange_failed', marker, { ...this.#options, httpOnly: true, maxAge: FAILURE_SECONDS })
  }

  clear(reply: FastifyReply): void {
    for (const name of SESSION_COOKIES) this.#clear(reply, name)
  }

  #clear(reply: FastifyReply, name: string): void {
    setCookie(reply, name, '', { ...this.#options, maxAge: 0 })
  }
}
