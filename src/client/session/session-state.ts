import type { TSchema } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { type AuthUser, AuthUserSchema, TokenExpirySchema } from '../../../schemas/session.js'
import { cookieValue } from '../cookie-value.js'

/** What a page knows of the session. The token itself is in a cookie that no script can read. */
export interface SessionState {
  readonly isSignedIn: boolean
  /** Null where nobody is signed in, and where the cookie does not say who. */
  readonly user: AuthUser | null
  /** What may be offered; null where it is not known yet, because there are too many for a cookie. */
  readonly permissions: readonly string[] | null
  /** Milliseconds since 1970. */
  readonly expiresAtMs: number | null
}

export const SIGNED_OUT: SessionState = { isSignedIn: false, user: null, permissions: [], expiresAtMs: null }

/**
 * The session that the readable cookies tell of. Anybody can write a cookie, so nothing is taken that does not look as it
 * should. A session is as long as its expiry says: without one, or past it, there is none.
 */
export const sessionState = (cookies: string, nowMs: number): SessionState => {
  const expiresAtMs = jsonCookie<number>(cookies, 'auth_token_expiry', TokenExpirySchema)
  if (expiresAtMs === null || expiresAtMs <= nowMs) return SIGNED_OUT
  return {
    isSignedIn: true,
    user: jsonCookie<AuthUser>(cookies, 'auth_user', AuthUserSchema),
    permissions: permissionsIn(cookies),
    expiresAtMs
  }
}

const jsonCookie = <Content>(cookies: string, name: string, schema: TSchema): Content | null => {
  const value = parsed(cookieValue(cookies, name))
  return Check(schema, value) ? (value as Content) : null
}

/** Not by its schema: one permission in another style must not hide all others. */
const permissionsIn = (cookies: string): readonly string[] | null =>
  permissionList(parsed(cookieValue(cookies, 'auth_permissions')))

export const permissionList = (value: unknown): readonly string[] | null =>
  Array.isArray(value) ? value.filter((entry): entry is string => typeof entry === 'string') : null

const parsed = (text: string | null): unknown => {
  if (text === null) return null
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
