import type { SerializeOptions } from '@fastify/cookie'
import { Value } from '@sinclair/typebox/value'
import type { FastifyReply } from 'fastify'
import type { Logger } from 'pino'
import { type AuthUser, AuthUserSchema, MAX_DISPLAY_NAME_CHARACTERS } from '../../../schemas/session.js'
import { type AppTokenVerifier, decodeClaims } from '../../shared/app-token.js'
import { cookieOptions, setCookie } from './cookies.js'
import { isUsableToken } from './credentials.js'

/** A session at the backend, as its login response describes it. */
export interface AppSession {
  readonly token: string
  readonly user: AuthUser
  readonly permissions: readonly string[]
  readonly expiresAtMs: number
  /** Counted from when the response was read. */
  readonly lifetimeSeconds: number
}

/** The largest time value of a JavaScript `Date`. */
const MAX_DATE_MS = 8.64e15

type Fields = Readonly<Record<string, unknown>>

export type LoginResponse =
  | { readonly session: AppSession; readonly missing: null }
  /** Names the first required field that is missing or unusable. */
  | { readonly session: null; readonly missing: string }

/** Reads a login response `{ success: true, data: { token, user, expiresIn } }`. */
export const readLoginResponse = (response: unknown, now: number): LoginResponse => {
  if (!isObject(response)) return without('a JSON object')
  if (response.success !== true) return without('success')
  if (!isObject(response.data)) return without('data')
  const { token, user: userFields, permissions, expiresIn } = response.data
  if (typeof token !== 'string' || !isUsableToken(token)) return without('data.token')

  const decoded = decodeClaims(token)
  const expiresAtMs = decoded?.expiresAtMs ?? (typeof expiresIn === 'number' ? now + expiresIn * 1000 : Number.NaN)
  if (!(expiresAtMs > now && expiresAtMs <= MAX_DATE_MS))
    return without(decoded === null ? 'data.expiresIn' : 'a future exp in data.token')

  const user = isObject(userFields) ? userFields : {}
  const session: AppSession = {
    token,
    user: {
      userId: validField('userId', user.userId ?? user.id),
      email: validField('email', user.email),
      displayName: validField('displayName', truncated(user.displayName ?? user.name)),
      role: validField('role', user.role)
    },
    permissions: stringsOf(user.permissions) ?? stringsOf(permissions) ?? stringsOf(decoded?.claims.permissions) ?? [],
    expiresAtMs: Math.trunc(expiresAtMs),
    lifetimeSeconds: Math.floor((expiresAtMs - now) / 1000)
  }
  return { session, missing: null }
}

/** Whether the backend rejects the login in the body, possibly with status 200. */
export const isRejectedLogin = (response: unknown): boolean => isObject(response) && response.success === false

const without = (missing: string): LoginResponse => ({ session: null, missing })

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Null for an invalid field. Fields are not truncated, because a truncated id or role would be a different one. */
const validField = <Field extends keyof AuthUser>(field: Field, value: unknown): AuthUser[Field] | null =>
  // The schema of the field has checked the value; TypeScript cannot relate the two through a generic key.
  Value.Check(AuthUserSchema.properties[field], value) ? (value as AuthUser[Field]) : null

/** A truncated display name is acceptable. */
const truncated = (value: unknown): unknown =>
  typeof value === 'string' ? value.slice(0, MAX_DISPLAY_NAME_CHARACTERS) : value

const stringsOf = (value: unknown): readonly string[] | null =>
  Array.isArray(value) ? value.filter((entry): entry is string => typeof entry === 'string') : null

export interface StartSessionOptions {
  readonly cookies: SessionCookies
  readonly tokens: AppTokenVerifier
  readonly log: Logger
  /** Whether the session comes from the identity provider. */
  readonly viaProvider?: boolean
}

/** Sets the session's cookies and logs what is wrong with it. False if the token does not fit into a cookie. */
export const startSession = (options: StartSessionOptions, reply: FastifyReply, session: AppSession): boolean => {
  const { cookies, tokens, log, viaProvider = false } = options
  const requestId = reply.request.id
  if (!cookies.canStore(session)) {
    log.error({ requestId, characters: session.token.length }, 'backend token too large for a cookie')
    return false
  }
  if (!cookies.set(reply, session, { viaProvider })) {
    log.warn({ requestId, permissions: session.permissions.length }, 'permissions too large for a cookie')
  }
  try {
    tokens.verify(session.token)
  } catch (error) {
    log.error({ requestId, err: error }, 'backend token not valid at the gateway, check API_SECRET and TOKEN_SECRET')
  }
  return true
}

/** All cookies of an app session, and the marker that suppresses the exchange. */
export const SESSION_COOKIES: readonly string[] = [
  'auth_token',
  'auth_user',
  'auth_permissions',
  'auth_token_expiry',
  'auth_via_oidc',
  'csrf_token',
  'oidc_exchange_failed'
]

const FAILURE_MARKER_SECONDS = 5 * 60

// Browsers silently drop a cookie whose name and value exceed 4096 bytes.
const MAX_COOKIE_BYTES = 4096
const MAX_VALUE_BYTES = 3800

/** Returns the permissions that do not fit into a cookie. */
const PERMISSIONS_ADDRESS = '/api/auth/backend-me'

/** Writes the cookies of app sessions. */
export class SessionCookies {
  readonly #options: SerializeOptions

  constructor(config: { readonly secure: boolean }) {
    this.#options = cookieOptions(config)
  }

  /** Whether browsers would store the token. The other cookies are useless without it. */
  canStore({ token }: AppSession): boolean {
    return 'auth_token'.length + encodeURIComponent(token).length <= MAX_COOKIE_BYTES
  }

  /** Sets all cookies. False if the permissions were too large and the page has to request them. */
  set(reply: FastifyReply, session: AppSession, { viaProvider = false } = {}): boolean {
    const { token, user, permissions, expiresAtMs, lifetimeSeconds } = session
    const readable = { ...this.#options, maxAge: lifetimeSeconds }
    const permissionText = JSON.stringify(permissions)
    const fits = encodeURIComponent(permissionText).length <= MAX_VALUE_BYTES

    setCookie(reply, 'auth_token', token, { ...readable, httpOnly: true })
    setCookie(reply, 'auth_user', JSON.stringify(user), readable)
    setCookie(reply, 'auth_token_expiry', String(expiresAtMs), readable)
    if (fits) setCookie(reply, 'auth_permissions', permissionText, readable)
    else {
      // The permissions of an earlier session must not remain.
      this.#clear(reply, 'auth_permissions')
      reply.header('x-auth-permissions-at', PERMISSIONS_ADDRESS)
    }
    if (viaProvider) setCookie(reply, 'auth_via_oidc', 'true', readable)
    else this.#clear(reply, 'auth_via_oidc')
    this.#clear(reply, 'oidc_exchange_failed')
    return fits
  }

  /** Marks the browser's provider session as one without an account, so that the exchange is not repeated for a while. */
  setFailureMarker(reply: FastifyReply, marker: string): void {
    const options = { ...this.#options, httpOnly: true, maxAge: FAILURE_MARKER_SECONDS }
    setCookie(reply, 'oidc_exchange_failed', marker, options)
  }

  clear(reply: FastifyReply): void {
    for (const name of SESSION_COOKIES) this.#clear(reply, name)
  }

  #clear(reply: FastifyReply, name: string): void {
    setCookie(reply, name, '', { ...this.#options, maxAge: 0 })
  }
}
