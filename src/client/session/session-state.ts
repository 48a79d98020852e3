import type { TSchema } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { type AuthUser, AuthUserSchema, TokenExpirySchema } from '../../../schemas/session.js'
import { cookieValue } from '../cookie-value.js'

/** The session as the readable cookies describe it. The token itself is in an HttpOnly cookie. */
export interface SessionState {
  readonly isSignedIn: boolean
  /** Null if no user is signed in or the cookie is invalid. */
  readonly user: AuthUser | null
  /** Null if they are not known yet, because they do not fit into a cookie. */
  readonly permissions: readonly string[] | null
  /** Milliseconds since 1970. */
  readonly expiresAtMs: number | null
}

export const SIGNED_OUT: SessionState = { isSignedIn: false, user: null, permissions: [], expiresAtMs: null }

/** Reads the session from the cookies. Invalid values are ignored. Without an expiry, or after it, there is no session. */
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
  // The schema has checked the value; the caller names its type.
  return Check(schema, value) ? (value as Content) : null
}

/** Not validated by its schema: one malformed permission must not hide the others. */
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
