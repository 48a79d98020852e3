import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { errorCode } from '../../shared/error-code.js'
// Registers the format `http-url`.
import '../../shared/setting-kinds.js'
import { type ListFile, readListFile } from '../../shared/settings-file.js'

/** The id of the provider of the settings `OIDC_ISSUER` and `OIDC_CLIENT_ID`. */
export const DEFAULT_PROVIDER = 'default'

const claim = (about: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: 256, rule: `the claim with ${about}, or a path such as a.b` }))

const ProviderEntry = Type.Object(
  {
    id: Type.String({
      pattern: '^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$',
      rule: '1 to 32 lower-case letters, digits and dashes, with no dash at either end'
    }),
    issuer: Type.String({ format: 'http-url', rule: 'an http or https address without user, query or fragment' }),
    client_id: Type.String({ minLength: 1, rule: 'text' }),
    client_secret_file: Type.String({ minLength: 1, rule: 'the path of a file' }),
    scopes: Type.Optional(
      Type.String({ pattern: '^(?:\\S+ +)*openid(?: +\\S+)*$', rule: 'scopes separated by spaces, with openid' })
    ),
    label: Type.Optional(Type.RegExp(/^(?=.*\S)\P{C}{1,64}$/u, { rule: '1 to 64 printable characters' })),
    claims: Type.Optional(
      Type.Object(
        { email: claim('the email address'), name: claim('the display name'), groups: claim('the groups') },
        { additionalProperties: false, rule: 'an object with email, name or groups' }
      )
    )
  },
  { additionalProperties: false, rule: 'an object' }
)

/** An entry of the file, with the secret that its file contains. */
export type ProviderEntry = Static<typeof ProviderEntry> & { readonly clientSecret: string }

/** The values that two providers must not share. */
export interface ProviderIdentity {
  readonly id: string
  readonly issuer: string
  readonly client_id: string
}

interface ProvidersFileOptions {
  readonly production: boolean
  readonly isExposed: (url: string) => boolean
  /** The provider of the settings. */
  readonly first: ProviderIdentity | null
}

/** Reads the file of `OIDC_PROVIDERS`. Each error is one line. */
export const readProvidersFile = (
  path: string,
  options: ProvidersFileOptions
): { readonly entries: readonly ProviderEntry[]; readonly errors: readonly string[] } => {
  const file = readListFile('OIDC_PROVIDERS', path, ProviderEntry)
  const errors = [...file.errors, ...entryErrors(file, options)]
  const secrets = file.checkable.map(({ client_secret_file: name }, index) => {
    if (name === undefined) return ''
    const { secret, error } = readSecret(resolve(dirname(path), name))
    if (error !== null) errors.push(file.error(index, 'client_secret_file', error))
    return secret
  })
  return { entries: file.entries.map((entry, index) => ({ ...entry, clientSecret: secrets[index] ?? '' })), errors }
}

const readSecret = (path: string): { readonly secret: string; readonly error: string | null } => {
  try {
    const secret = readFileSync(path, 'utf8').trim()
    return { secret, error: secret === '' ? 'names an empty file' : null }
  } catch (error) {
    return { secret: '', error: `must name a readable file (${errorCode(error)})` }
  }
}

// `/auth/oidc/login` and the others are paths of all providers.
const RESERVED_IDS: ReadonlySet<string> = new Set([
  DEFAULT_PROVIDER,
  'login',
  'callback',
  'logout',
  'backchannel-logout'
])

const entryErrors = (
  { checkable, error }: ListFile<Static<typeof ProviderEntry>>,
  { production, isExposed, first }: ProvidersFileOptions
): string[] => {
  const errors: string[] = []
  const others: Partial<ProviderIdentity>[] = first === null ? [] : [first]
  const labels = new Set<string>()
  for (const [index, entry] of checkable.entries()) {
    const { id, issuer, client_id, label } = entry
    if (id !== undefined && RESERVED_IDS.has(id))
      errors.push(error(index, 'id', `must not be ${id}, which has another meaning`))
    if (id !== undefined && others.some((other) => other.id === id))
      errors.push(error(index, 'id', 'is also the id of another entry'))
    if (production && issuer !== undefined && isExposed(issuer))
      errors.push(error(index, 'issuer', 'must be an https address in production, unless it is on this machine'))
    const same = others.find((other) => other.issuer === issuer && other.client_id === client_id)
    if (same !== undefined && issuer !== undefined && client_id !== undefined)
      errors.push(error(index, null, `has the issuer and client_id of ${same.id ?? 'another entry'}`))
    if (label !== undefined && labels.has(label)) errors.push(error(index, 'label', 'is also that of another entry'))
    labels.add(label ?? '')
    others.push(entry)
  }
  return errors
}
