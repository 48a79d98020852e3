/** Whom the provider vouches for, as far as an account here is concerned. */
export interface Identity {
  readonly subject: string
  readonly email: string
  readonly name: string
  readonly groups: readonly string[]
  /** The provider's own name for the session, where it has one: with it a logout finds the session. */
  readonly providerSession: string | null
}

export type Claims = Readonly<Record<string, unknown>>

/** Why claims name nobody who could have an account. */
export type IdentityFault = 'no-subject' | 'no-email' | 'unconfirmed-email'

const MAX_EMAIL_CHARACTERS = 254
const MAX_ID_CHARACTERS = 255
const MAX_NAME_CHARACTERS = 128
const MAX_GROUPS = 100

// All of it must fit into one cookie, sealed. Most of the room is for groups, which grow by themselves in some companies.
const MAX_IDENTITY_BYTES = 2600

export interface IdentityResult {
  readonly identity: Identity | null
  readonly fault: IdentityFault | null
  /** How many groups were left out. */
  readonly groupsCut: number
}

export const identityOf = (claims: Claims, groupsClaim: string): IdentityResult => {
  const subject = shortText(claims.sub)
  if (subject === null) return refused('no-subject')
  const email = textOf(claims.email)?.trim()
  if (email === undefined || !isEmail(email)) return refused('no-email')
  // Who may write any address into a profile could else take over the account that it belongs to.
  if (isDenied(claims.email_verified)) return refused('unconfirmed-email')

  const all = groupsAt(claims, groupsClaim)
  const person = {
    subject,
    email,
    name: nameOf(claims) ?? email,
    providerSession: shortText(claims.sid)
  }
  const groups = fittingGroups(all, MAX_IDENTITY_BYTES - jsonBytes(person))
  return { identity: { ...person, groups }, fault: null, groupsCut: all.length - groups.length }
}

const refused = (fault: IdentityFault): IdentityResult => ({ identity: null, fault, groupsCut: 0 })

/** Whether the provider's answer has all that was asked for, so that nobody else need be asked. */
export const isComplete = (claims: Claims, groupsClaim: string): boolean =>
  textOf(claims.email) !== undefined && nameOf(claims) !== undefined && valueAt(claims, groupsClaim) !== undefined

/** Some providers say nothing of it, and some say it in words. */
const isDenied = (confirmed: unknown): boolean => confirmed != null && String(confirmed).toLowerCase() !== 'true'

const nameOf = (claims: Claims): string | undefined => {
  const name =
    textOf(claims.name) ??
    textOf([claims.given_name, claims.family_name].filter((part) => textOf(part)).join(' ')) ??
    textOf(claims.preferred_username)
  // By whole characters: half of one is a fault to whoever reads it next.
  return textOf([...(name ?? '').replace(UNFIT, ' ').trim()].slice(0, MAX_NAME_CHARACTERS).join(''))
}

// What databases and logs stumble over: control characters, and halves of characters.
const UNFIT = /[\p{Cc}\p{Cs}]/gu

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value.trim() !== '' ? value : undefined

/** An id that was cut would be another one. */
const shortText = (value: unknown): string | null =>
  typeof value === 'string' && value !== '' && value.length <= MAX_ID_CHARACTERS ? value : null

// Something, an at, something: the backend knows whom it belongs to. No blanks and nothing that could end a line.
const isEmail = (text: string): boolean =>
  text.length <= MAX_EMAIL_CHARACTERS && /^[^\s@\p{C}]+@[^\s@\p{C}]+$/u.test(text)

export const groupsAt = (claims: Claims, groupsClaim: string): string[] => {
  const value = valueAt(claims, groupsClaim)
  const entries = Array.isArray(value) ? value : [value]
  return [...new Set(entries.filter((entry): entry is string => typeof entry === 'string' && isGroupName(entry)))]
}

/** One that had to be changed would be another group. */
const isGroupName = (text: string): boolean => text.trim() !== '' && text.search(UNFIT) === -1

/**
 * The value at a path such as `realm_access.roles`. Names may have dots in them (`https://example.com/roles`), so the
 * longest name that is there counts.
 */
const valueAt = (value: unknown, path: string): unknown => {
  if (typeof value !== 'object' || value === null) return undefined
  if (Object.hasOwn(value, path)) return (value as Claims)[path]
  for (let dot = path.lastIndexOf('.'); dot > 0; dot = path.lastIndexOf('.', dot - 1)) {
    const name = path.slice(0, dot)
    const found = Object.hasOwn(value, name) ? valueAt((value as Claims)[name], path.slice(dot + 1)) : undefined
    if (found !== undefined) return found
  }
  return undefined
}

const fittingGroups = (groups: readonly string[], room: number): string[] => {
  let left = room
  const fitting: string[] = []
  for (const group of groups.slice(0, MAX_GROUPS)) {
    left -= jsonBytes(group) + 1
    if (left < 0) break
    fitting.push(group)
  }
  return fitting
}

const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))
