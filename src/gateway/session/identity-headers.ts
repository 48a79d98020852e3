import type { FastifyRequest } from 'fastify'
import { type AppClaims, type AppTokenVerifier, userDetails } from '../../shared/app-token.js'
import { HOP_BY_HOP } from '../../shared/hop-by-hop.js'

export const IDENTITY_FIELDS = ['user', 'email', 'role', 'permissions'] as const
export type IdentityField = (typeof IDENTITY_FIELDS)[number]

/** Header names by the field of the user that they carry. */
export type IdentityHeaderNames = Readonly<Partial<Record<IdentityField, string>>>

export const DEFAULT_IDENTITY_HEADERS = {
  user: 'X-Auth-User',
  email: 'X-Auth-Email',
  role: 'X-Auth-Role',
  permissions: 'X-Auth-Permissions'
} as const satisfies IdentityHeaderNames

/** Headers that tell a server who the user of a verified app token is. */
export class IdentityHeaders {
  readonly #names: readonly (readonly [IdentityField, string])[]
  readonly #folded: ReadonlySet<string>

  /** The names must be valid: see `identityHeaderErrors`. */
  constructor(names: IdentityHeaderNames) {
    this.#names = IDENTITY_FIELDS.flatMap((field) => {
      const name = names[field]
      return name === undefined ? [] : [[field, name.toLowerCase()] as const]
    })
    this.#folded = new Set(this.#names.map(([, name]) => foldedName(name)))
  }

  /** Whether a server may read a client's header, named in lower case, as one of these headers. */
  includes(name: string): boolean {
    return this.#folded.has(foldedName(name))
  }

  /** Alternating names and values. A field that the claims do not have has no header. */
  of(claims: AppClaims): string[] {
    return this.#names.flatMap(([field, name]) => {
      const value = fieldOf(claims, field)
      return value === null ? [] : [name, value]
    })
  }
}

/** The claims of the request's app token: of its cookie, or of the token that the session exchange has obtained for it. */
export const requestClaims = (request: FastifyRequest, tokens: AppTokenVerifier): AppClaims | null => {
  if (request.auth !== null || request.exchangedToken === null) return request.auth
  try {
    return tokens.verify(request.exchangedToken).claims
  } catch {
    // The backend and the gateway have different secrets, which `startAppSession` has logged.
    return null
  }
}

const fieldOf = (claims: AppClaims, field: IdentityField): string | null => {
  if (field === 'permissions') {
    const listed: unknown = Object.hasOwn(claims, 'permissions') ? claims.permissions : undefined
    return Array.isArray(listed) ? headerList(listed) : null
  }
  const { id, email, role } = userDetails(claims)
  return headerText({ user: id, email, role }[field])
}

const headerList = (values: readonly unknown[]): string | null => {
  const texts = values.flatMap((value) => (typeof value === 'string' && value !== '' ? (headerText(value) ?? []) : []))
  return texts.length === 0 ? null : texts.map((text) => text.replaceAll(',', '%2C')).join(',')
}

// Servers trim blanks at both ends. `%` is encoded too, so that decoding always restores the value.
const NOT_IN_HEADER = /^ | $|[^\x20-\x24\x26-\x7e]/gu

// It has no encoding.
const LONE_SURROGATE = /\p{Cs}/u

/** The value percent-encoded where a header cannot contain it. Different values never have the same form. */
const headerText = (value: string | null): string | null =>
  value === null || LONE_SURROGATE.test(value) ? null : value.replace(NOT_IN_HEADER, encoded)

const encoded = (character: string): string =>
  [...Buffer.from(character)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('')

/** Servers read `X_Auth_User` and, as variables of CGI, also `X.Auth.User` as `X-Auth-User`. */
const foldedName = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, '-')

const HEADER_NAME = /^[A-Za-z][A-Za-z0-9-]{0,63}$/

// Headers that the gateway sets or that belong to the connection, the message and the handshake of a WebSocket.
const RESERVED_NAMES: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  'accept',
  'authorization',
  'cookie',
  'date',
  'expect',
  'forwarded',
  'host',
  'origin',
  'range',
  'referer',
  'traceparent',
  'tracestate',
  'user-agent',
  'via',
  'x-csrf-token',
  'x-exchange-secret',
  'x-real-ip',
  'x-request-id'
])
const RESERVED_PREFIXES = ['accept-', 'access-control-', 'content-', 'if-', 'proxy-', 'sec-', 'x-forwarded-']

/** Errors of header names that an operator has chosen, one line each. */
export const identityHeaderErrors = (names: IdentityHeaderNames): string[] => {
  const errors: string[] = []
  const seen = new Map<string, IdentityField>()
  for (const field of IDENTITY_FIELDS) {
    const name = names[field]
    if (name === undefined) continue
    const folded = foldedName(name)
    const other = seen.get(folded)
    if (!HEADER_NAME.test(name))
      errors.push(`${field} must be a header name such as ${DEFAULT_IDENTITY_HEADERS[field]}`)
    else if (RESERVED_NAMES.has(folded) || RESERVED_PREFIXES.some((prefix) => folded.startsWith(prefix)))
      errors.push(`${field} must not be the header ${name}, which has another meaning`)
    else if (other !== undefined) errors.push(`${field} must not be ${name}, which is also the header of ${other}`)
    seen.set(folded, field)
  }
  return errors
}
