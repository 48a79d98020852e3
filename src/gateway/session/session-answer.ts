import { decodeClaims } from '../../shared/app-token.js'
import { isUsableToken } from './credentials.js'

/** What a login at the backend amounts to. */
export interface Session {
  readonly token: string
  readonly user: SessionUser
  readonly permissions: readonly string[]
  readonly expiresAtMs: number
}

export interface SessionUser {
  readonly userId: string | number | null
  readonly email: string | null
  readonly displayName: string | null
  readonly role: string | null
}

/** The last moment that JavaScript can name, and so the last that a page can read. */
const END_OF_TIME_MS = 8.64e15

type Fields = Readonly<Record<string, unknown>>

/** The session in a login answer `{ success: true, data: { token, user, expiresIn } }`, or null where there is none. */
export const sessionOf = (answer: unknown, now: number): Session | null => {
  const { success, data } = fields(answer)
  const { token, user: userFields, permissions, expiresIn } = fields(data)
  if (success !== true || typeof token !== 'string' || !isUsableToken(token)) return null

  const decoded = decodeClaims(token)
  const expiresAtMs = decoded?.expiresAtMs ?? (typeof expiresIn === 'number' ? now + expiresIn * 1000 : Number.NaN)
  if (!(expiresAtMs > now && expiresAtMs <= END_OF_TIME_MS)) return null

  const user = fields(userFields)
  return {
    token,
    user: {
      userId: idOf(user.userId ?? user.id),
      email: textOf(user.email),
      displayName: textOf(user.displayName ?? user.name),
      role: textOf(user.role)
    },
    permissions: stringsOf(user.permissions) ?? stringsOf(permissions) ?? stringsOf(decoded?.claims.permissions) ?? [],
    expiresAtMs: Math.trunc(expiresAtMs)
  }
}

const fields = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {})

// As long as an address may be. Much longer names would burst the cookie, and browsers drop such a cookie without a word.
const MAX_TEXT_CHARACTERS = 254

const textOf = (value: unknown): string | null =>
  typeof value === 'string' ? value.slice(0, MAX_TEXT_CHARACTERS) : null

const idOf = (value: unknown): string | number | null =>
  typeof value === 'number' && Number.isFinite(value) ? value : textOf(value)

const stringsOf = (value: unknown): readonly string[] | null =>
  Array.isArray(value) ? value.filter((entry): entry is string => typeof entry === 'string') : null
