import type { SerializeOptions } from '@fastify/cookie'
import type { FastifyReply } from 'fastify'
import type { Logger } from 'pino'
import type { AuthUser } from '../../../schemas/session.js'
import type { AppTokenVerifier } from '../../shared/app-token.js'
import { GatewayError } from '../errors.js'
import { cookieOptions, setCookie } from './cookies.js'

/** A session at the backend, as its login response describes it. */
export interface AppSession {
  readonly token: string
  readonly user: AuthUser
  readonly permissions: readonly string[]
  readonly expiresAtMs: number
  /** Counted from when the response was read. */
  readonly lifetimeSeconds: number
  /** When the login was sent to the backend, in milliseconds since 1970. Absent in results of earlier versions. */
  readonly requestedAtMs?: number
}

export interface StartAppSessionOptions {
  readonly cookies: AppSessionCookies
  readonly tokens: AppTokenVerifier
  /** Null if revocation is disabled. */
  readonly revocations: { signedIn(session: AppSession): Promise<void> } | null
  readonly log: Logger
  /** Whether the session comes from the identity provider. */
  readonly viaProvider?: boolean
}

/** Sets the session's cookies and logs its problems. Resolves to false if the token does not fit into a cookie. */
export const startAppSession = async (
  options: StartAppSessionOptions,
  reply: FastifyReply,
  session: AppSession
): Promise<boolean> => {
  const { cookies, tokens, revocations, log, viaProvider = false } = options
  const requestId = reply.request.id
  if (!cookies.canStore(session)) {
    log.error({ requestId, characters: session.token.length }, 'backend token too large for a cookie')
    return false
  }
  await revocations
    ?.signedIn(session)
    .catch((error) => log.warn({ requestId, err: error }, 'sign-in after a revocation not published yet'))
  const omitted = cookies.set(reply, session, { viaProvider })
  if (omitted.permissions)
    log.warn({ requestId, permissions: session.permissions.length }, 'permissions too large for a cookie')
  if (omitted.user.length > 0) log.warn({ requestId, omitted: omitted.user }, 'user details too large for a cookie')
  try {
    tokens.verify(session.token)
  } catch (error) {
    // While revocations are unknown, no token is accepted.
    if (!(error instanceof GatewayError))
      log.error({ requestId, err: error }, 'backend token not valid at the gateway, check API_SECRET and TOKEN_SECRET')
  }
  return true
}

/** All cookies of an app session, and the marker that suppresses the exchange. */
const APP_SESSION_COOKIES: readonly string[] = [
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

/**
 * Names and values of token, user and permissions. The parser accepts 16 KiB of headers, which also contain 4 KiB of a
 * provider session, 3 KiB of sign-ins in progress, and the other headers of a browser and its proxies.
 */
const MAX_SESSION_BYTES = 6 * 1024

/** Returns the permissions that do not fit into a cookie. */
const PERMISSIONS_ADDRESS = '/api/auth/backend-me'

interface OmittedDetails {
  readonly permissions: boolean
  readonly user: readonly (keyof AuthUser)[]
}

const cookieBytes = (name: string, text: string): number => name.length + encodeURIComponent(text).length

/** Omitted in this order until the rest fits. Id and role always fit. */
const OMITTABLE_FIELDS = ['displayName', 'email'] as const

/** The fields of the user that do not fit into a cookie: percent-encoded, a character can take nine bytes. */
const omittedFields = (user: AuthUser, fits: (text: string) => boolean): OmittedDetails['user'] => {
  const counts = [0, 1, 2]
  const count = counts.find((count) => fits(userText(user, OMITTABLE_FIELDS.slice(0, count))))
  return OMITTABLE_FIELDS.slice(0, count)
}

const userText = (user: AuthUser, omitted: OmittedDetails['user']): string =>
  JSON.stringify({ ...user, ...Object.fromEntries(omitted.map((name) => [name, null])) })

/** Writes the cookies of app sessions. */
export class AppSessionCookies {
  readonly #options: SerializeOptions

  constructor(config: { readonly secure: boolean }) {
    this.#options = cookieOptions(config)
  }

  /** Whether browsers would store the token. The other cookies are useless without it. */
  canStore({ token }: AppSession): boolean {
    return cookieBytes('auth_token', token) <= MAX_COOKIE_BYTES
  }

  /** Sets all cookies, without details that do not fit. The web application has to request omitted permissions. */
  set(reply: FastifyReply, session: AppSession, { viaProvider = false } = {}): OmittedDetails {
    const { token, user, permissions, expiresAtMs, lifetimeSeconds } = session
    const readable = { ...this.#options, maxAge: lifetimeSeconds }
    let bytesLeft = MAX_SESSION_BYTES - cookieBytes('auth_token', token)
    const fits = (name: string, text: string): boolean =>
      cookieBytes(name, text) <= Math.min(name.length + MAX_VALUE_BYTES, bytesLeft)
    const omitted = omittedFields(user, (text) => fits('auth_user', text))
    const shownUser = userText(user, omitted)
    bytesLeft -= cookieBytes('auth_user', shownUser)
    const permissionText = JSON.stringify(permissions)
    const hasPermissions = fits('auth_permissions', permissionText)

    setCookie(reply, 'auth_token', token, { ...readable, httpOnly: true })
    setCookie(reply, 'auth_user', shownUser, readable)
    setCookie(reply, 'auth_token_expiry', String(expiresAtMs), readable)
    if (hasPermissions) setCookie(reply, 'auth_permissions', permissionText, readable)
    else {
      // The permissions of an earlier session must not remain.
      this.#clear(reply, 'auth_permissions')
      reply.header('x-auth-permissions-at', PERMISSIONS_ADDRESS)
    }
    if (viaProvider) setCookie(reply, 'auth_via_oidc', 'true', readable)
    else this.#clear(reply, 'auth_via_oidc')
    this.#clear(reply, 'oidc_exchange_failed')
    return { permissions: !hasPermissions, user: omitted }
  }

  /** Marks the browser's provider session as one without an account, so that the exchange is not repeated for a while. */
  setFailureMarker(reply: FastifyReply, marker: string): void {
    const options = { ...this.#options, httpOnly: true, maxAge: FAILURE_MARKER_SECONDS }
    setCookie(reply, 'oidc_exchange_failed', marker, options)
  }

  clear(reply: FastifyReply): void {
    for (const name of APP_SESSION_COOKIES) this.#clear(reply, name)
  }

  #clear(reply: FastifyReply, name: string): void {
    setCookie(reply, name, '', { ...this.#options, maxAge: 0 })
  }
}
