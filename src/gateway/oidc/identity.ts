import { isObject } from '../../shared/is-object.js'

/** The claims of the provider's user that identify an account at the backend. */
export interface Identity {
  readonly subject: string
  readonly email: string
  readonly name: string
  readonly groups: readonly string[]
  /** The `sid` of the session at the provider, if it sends one. Back-channel logout names sessions by it. */
  readonly sid: string | null
}

export type Claims = Readonly<Record<string, unknown>>

/** Which claims of a provider have the email address, the display name and the groups: names, or paths such as `a.b`. */
export interface ClaimNames {
  /** Null for `email`. */
  readonly email: string | null
  /** Null for `name` and the claims that replace it. */
  readonly name: string | null
  readonly groups: string
}

/** Why claims do not identify an account. */
export type IdentityError = 'no-subject' | 'no-email' | 'unconfirmed-email'

const MAX_EMAIL_CHARACTERS = 254
const MAX_ID_CHARACTERS = 255
const MAX_NAME_CHARACTERS = 128
const MAX_GROUPS = 100

// The identity must fit into one cookie after encryption. Most of the space is left for groups.
const MAX_IDENTITY_BYTES = 2600

export type IdentityResult =
  | { readonly identity: Identity; readonly error: null; readonly droppedGroups: number }
  | { readonly identity: null; readonly error: IdentityError; readonly droppedGroups: 0 }

export const identityOf = (claims: Claims, groupsClaim: string): IdentityResult => {
  const subject = idOf(claims.sub)
  if (subject === null) return failed('no-subject')
  const email = textOf(claims.email)?.trim()
  if (email === undefined || !isEmail(email)) return failed('no-email')
  // A user who can enter any address at the provider could take over the account of its owner.
  if (isUnconfirmed(claims.email_verified)) return failed('unconfirmed-email')

  const all = groupsAt(claims, groupsClaim)
  const person = {
    subject,
    email,
    name: nameOf(claims) ?? email,
    sid: idOf(claims.sid)
  }
  const groups = fittingGroups(all, MAX_IDENTITY_BYTES - jsonBytes(person))
  return { identity: { ...person, groups }, error: null, droppedGroups: all.length - groups.length }
}

const failed = (error: IdentityError): IdentityResult => ({ identity: null, error, droppedGroups: 0 })

/** The claims under their standard names. A claim that was given another name does not fall back to the standard one. */
export const standardClaims = (claims: Claims, { email, name }: ClaimNames): Claims => ({
  ...claims,
  ...(email !== null && { email: claimAt(claims, email) }),
  ...(name !== null && { name: claimAt(claims, name) })
})

/** Whether the ID token has all claims that the gateway uses, so that the userinfo endpoint is not needed. */
export const isComplete = (claims: Claims, groupsClaim: string): boolean =>
  textOf(claims.email) !== undefined && nameOf(claims) !== undefined && claimAt(claims, groupsClaim) !== undefined

/**
 * The claims of the ID token, completed with those of the userinfo endpoint. The address and its confirmation come from the
 * same source: a confirmation in the other one counts only if it is not about another address.
 */
export const mergedClaims = (idToken: Claims, userInfo: Claims): Claims => {
  const [source, other] = textOf(idToken.email) === undefined ? [userInfo, idToken] : [idToken, userInfo]
  const isOtherAddress = textOf(other.email) !== undefined && addressOf(other) !== addressOf(source)
  return {
    ...userInfo,
    ...idToken,
    email: source.email,
    email_verified: source.email_verified ?? (isOtherAddress ? undefined : other.email_verified)
  }
}

const addressOf = ({ email }: Claims): string | undefined => textOf(email)?.trim().toLowerCase()

/** Some providers omit `email_verified`, and some send it as text. */
const isUnconfirmed = (confirmed: unknown): boolean => confirmed != null && String(confirmed).toLowerCase() !== 'true'

const nameOf = (claims: Claims): string | undefined => {
  const name =
    textOf(claims.name) ??
    textOf([claims.given_name, claims.family_name].filter((part) => textOf(part)).join(' ')) ??
    textOf(claims.preferred_username)
  // Cut between code points: half of a surrogate pair is not valid text.
  return textOf([...(name ?? '').replace(UNPRINTABLE, ' ').trim()].slice(0, MAX_NAME_CHARACTERS).join(''))
}

// Control characters and lone surrogates.
const UNPRINTABLE = /[\p{Cc}\p{Cs}]/gu

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value.trim() !== '' ? value : undefined

/** Not truncated, because a truncated id would be a different id. */
const idOf = (value: unknown): string | null =>
  typeof value === 'string' && value !== '' && value.length <= MAX_ID_CHARACTERS ? value : null

// The backend decides which account the address belongs to, so only white space and control characters are excluded.
const isEmail = (text: string): boolean =>
  text.length <= MAX_EMAIL_CHARACTERS && /^[^\s@\p{C}]+@[^\s@\p{C}]+$/u.test(text)

export const groupsAt = (claims: Claims, groupsClaim: string): string[] => {
  const value = claimAt(claims, groupsClaim)
  const entries = Array.isArray(value) ? value : [value]
  return [...new Set(entries.filter((entry): entry is string => typeof entry === 'string' && isGroupName(entry)))]
}

/** Invalid names are dropped, not repaired: a changed name could be a different group. */
const isGroupName = (text: string): boolean => text.trim() !== '' && text.search(UNPRINTABLE) === -1

/**
 * The value at a path such as `realm_access.roles`. Claim names may contain dots (`https://example.com/roles`), so the
 * longest matching name is tried first.
 */
const claimAt = (value: unknown, path: string): unknown => {
  if (!isObject(value)) return undefined
  if (Object.hasOwn(value, path)) return value[path]
  for (let dot = path.lastIndexOf('.'); dot > 0; dot = path.lastIndexOf('.', dot - 1)) {
    const name = path.slice(0, dot)
    const found = Object.hasOwn(value, name) ? claimAt(value[name], path.slice(dot + 1)) : undefined
    if (found !== undefined) return found
  }
  return undefined
}

const fittingGroups = (groups: readonly string[], maxBytes: number): string[] => {
  let bytesLeft = maxBytes
  const fitting: string[] = []
  for (const group of groups.slice(0, MAX_GROUPS)) {
    bytesLeft -= jsonBytes(group) + 1
    if (bytesLeft < 0) break
    fitting.push(group)
  }
  return fitting
}

const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))
