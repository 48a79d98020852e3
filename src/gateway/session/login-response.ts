import { Value } from '@sinclair/typebox/value'
import { type AuthUser, AuthUserSchema, MAX_DISPLAY_NAME_CHARACTERS } from '../../../schemas/session.js'
import { decodeClaims } from '../../shared/app-token.js'
import { isObject } from '../../shared/is-object.js'
import { withoutMember } from '../../shared/json-member.js'
import type { AppSession } from './app-session.js'
import { isUsableToken } from './credentials.js'

/** Where a login response has its parts: names separated by dots. */
export interface LoginFields {
  readonly token: string
  readonly user: string
  readonly permissions: string
  readonly expiresIn: string
}

/** `{ success: true, data: { token, user, expiresIn } }`. */
export const DEFAULT_LOGIN_FIELDS: LoginFields = {
  token: 'data.token',
  user: 'data.user',
  permissions: 'data.user.permissions',
  expiresIn: 'data.expiresIn'
}

export type LoginResponse =
  | { readonly session: AppSession; readonly missing: null }
  /** Names the first required field that is missing or unusable. */
  | { readonly session: null; readonly missing: string }

/** The largest time value of a JavaScript `Date`. */
const MAX_DATE_MS = 8.64e15

/** Reads the session in a login response. With fields of another backend, a token is enough. */
export const readLoginResponse = (response: unknown, now: number, fields = DEFAULT_LOGIN_FIELDS): LoginResponse => {
  if (!isObject(response)) return without('a JSON object')
  const isDefault = hasDefaultFields(fields)
  if (isDefault ? response.success !== true : isRejectedLogin(response)) return without('success')
  const token = fieldAt(response, fields.token)
  if (typeof token !== 'string' || !isUsableToken(token)) return without(fields.token)

  const decoded = decodeClaims(token)
  const expiresIn = fieldAt(response, fields.expiresIn)
  const expiresAtMs = decoded?.expiresAtMs ?? (typeof expiresIn === 'number' ? now + expiresIn * 1000 : Number.NaN)
  if (!(expiresAtMs > now && expiresAtMs <= MAX_DATE_MS))
    return without(decoded === null ? fields.expiresIn : `a future exp in ${fields.token}`)

  const userFields = fieldAt(response, fields.user)
  const user = isObject(userFields) ? userFields : {}
  const session: AppSession = {
    token,
    user: {
      userId: validField('userId', user.userId ?? user.id),
      email: validField('email', user.email),
      displayName: validField('displayName', truncated(user.displayName ?? user.name)),
      role: validField('role', user.role)
    },
    permissions:
      stringsOf(fieldAt(response, fields.permissions)) ??
      (isDefault ? stringsOf(fieldAt(response, 'data.permissions')) : null) ??
      stringsOf(decoded?.claims.permissions) ??
      [],
    expiresAtMs: Math.trunc(expiresAtMs),
    lifetimeSeconds: Math.floor((expiresAtMs - now) / 1000)
  }
  return { session, missing: null }
}

/** Whether the backend rejects the login in the body, possibly with status 200. */
export const isRejectedLogin = (response: unknown): boolean => isObject(response) && response.success === false

/** The response without its token, also where it occurs again. Only for one in which `readLoginResponse` has found the token. */
export const withoutLoginToken = (json: string, { token: path }: Pick<LoginFields, 'token'>, token: string): string =>
  withoutCopies(withoutMember(json, path.split('.')), token)

/** A shorter text, such as a placeholder of a backend in development, may be part of other words. */
const MIN_JWT_CHARACTERS = 32

/** The text with each copy of the token replaced by nothing. */
export const withoutCopies = (text: string, token: string): string =>
  token.length < MIN_JWT_CHARACTERS ? text : text.replaceAll(token, '')

const without = (missing: string): LoginResponse => ({ session: null, missing })

const hasDefaultFields = (fields: LoginFields): boolean =>
  fields.token === DEFAULT_LOGIN_FIELDS.token &&
  fields.user === DEFAULT_LOGIN_FIELDS.user &&
  fields.permissions === DEFAULT_LOGIN_FIELDS.permissions &&
  fields.expiresIn === DEFAULT_LOGIN_FIELDS.expiresIn

const fieldAt = (value: unknown, path: string): unknown =>
  path
    .split('.')
    .reduce<unknown>(
      (parent, name) => (isObject(parent) && Object.hasOwn(parent, name) ? parent[name] : undefined),
      value
    )

/** Null for an invalid field. Fields are not truncated, because a truncated id or role would be a different one. */
const validField = <Field extends keyof AuthUser>(field: Field, value: unknown): AuthUser[Field] | null =>
  // The schema of the field has checked the value; TypeScript cannot relate the two through a generic key.
  Value.Check(AuthUserSchema.properties[field], value) ? (value as AuthUser[Field]) : null

/** A truncated display name is acceptable. */
const truncated = (value: unknown): unknown =>
  typeof value === 'string' ? value.slice(0, MAX_DISPLAY_NAME_CHARACTERS) : value

const stringsOf = (value: unknown): readonly string[] | null =>
  Array.isArray(value) ? value.filter((entry): entry is string => typeof entry === 'string') : null
