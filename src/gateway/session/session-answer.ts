import { Value } from '@sinclair/typebox/value'
import { type AuthUser, AuthUserSchema, MAX_DISPLAY_NAME_CHARACTERS } from '../../../schemas/session.js'
import { decodeClaims } from '../../shared/app-token.js'
import { isUsableToken } from './credentials.js'

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
