import type { AuthUser } from '../../../schemas/session.js'
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
  const expiresAtMs = jsonCookie(cookies, 'auth_token_expiry', isWholeNumber)
  if (expiresAtMs === null || expiresAtMs <= nowMs) return SIGNED_OUT
  return {
    isSignedIn: true,
    user: jsonCookie(cookies, 'auth_user', isAuthUser),
    permissions: permissionsIn(cookies),
    expiresAtMs
  }
}

const jsonCookie = <Content>(
  cookies: string,
  name: string,
  isContent: (value: unknown) => value is Content
): Content | null => {
  const value = parsed(cookieValue(cookies, name))
  return isContent(value) ? value : null
}

// The same rules as `AuthUserSchema` and `TokenExpirySchema`, which a test compares. Not checked with TypeBox, because every
// page would have to load it.

const isWholeNumber = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0

const isNullOrText = (value: unknown, maxLength: number): boolean =>
  value === null || (typeof value === 'string' && value.length <= maxLength)

const isAuthUser = (value: unknown): value is AuthUser => {
  if (typeof value !== 'object' || value === null || Object.keys(value).length !== 4) return false
  const { userId, email, displayName, role } = value as Readonly<Record<string, unknown>> // every field is checked below
  const isUserId = isWholeNumber(userId) || (userId !== '' && isNullOrText(userId, 128))
  return isUserId && isNullOrText(email, 254) && isNullOrText(displayName, 200) && isNullOrText(role, 64)
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
