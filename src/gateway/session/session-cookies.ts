import type { SerializeOptions } from '@fastify/cookie'
import type { FastifyReply } from 'fastify'
import { cookieOptions, setCookie } from './cookies.js'
import type { Session } from './session-answer.js'

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
