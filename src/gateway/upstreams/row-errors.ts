import { type AccessPaths, isUnder } from '../access.js'
import { foldedPath } from '../http/folded-text.js'
import { NOT_IN_DEVELOPMENT } from '../node-environment.js'
import { identityHeaderErrors } from '../session/identity-headers.js'
import { gatewayPrefixOf } from './gateway-prefixes.js'
import { DEFAULT_UPSTREAM, type UpstreamRow } from './upstream-row.js'

/** Settings that rows must agree with. */
export interface UpstreamRules {
  /** From `PUBLIC_URL`; null if it is not set. */
  readonly publicOrigin: string | null
  readonly hasProvider: boolean
  readonly hasWebRoot: boolean
  /** False in development: backends would believe tokens that anyone gets there. */
  readonly allowsIdentityHeaders: boolean
  /** The paths of all rows that need a token. */
  readonly access: Pick<AccessPaths, 'strict' | 'admin'>
}

export interface RowError {
  readonly index: number
  readonly field: string | null
  readonly message: string
}

/** The fields of a row that have valid values. */
type Row = Partial<UpstreamRow>

/** Errors of rows besides those of single fields. */
export const rowErrors = (rows: readonly Row[], rules: UpstreamRules): RowError[] =>
  rows.flatMap((row, index) => {
    const others = rows.slice(0, index)
    return [
      ...nameErrors(row, others),
      ...settingErrors(row, rules),
      ...pathErrors(row, others),
      ...prefixErrors(row),
      ...accessErrors(row),
      ...openedPaths(row, rules),
      ...identityHeaderErrors(row.identity_headers ?? {}).map((message) => ({ field: 'identity_headers', message }))
    ].map((error) => ({ index, ...error }))
  })

type FieldError = Omit<RowError, 'index'>

const nameErrors = ({ name }: Row, others: readonly Row[]): FieldError[] => {
  if (name === undefined) return []
  if (name === DEFAULT_UPSTREAM)
    return [{ field: 'name', message: `must not be ${name}, which is the name of BACKEND_URL` }]
  return others.some((other) => other.name === name)
    ? [{ field: 'name', message: 'is also the name of another entry' }]
    : []
}

const settingErrors = (
  row: Row,
  { publicOrigin, hasProvider, hasWebRoot, allowsIdentityHeaders }: UpstreamRules
): FieldError[] => [
  ...(row.identity_headers !== undefined && !allowsIdentityHeaders
    ? [{ field: 'identity_headers', message: NOT_IN_DEVELOPMENT }]
    : []),
  ...(publicOrigin !== null && row.url !== undefined && new URL(row.url).origin === publicOrigin
    ? [{ field: 'url', message: 'must not be PUBLIC_URL: the gateway would forward requests to itself' }]
    : []),
  ...(row.token === 'provider' && !hasProvider
    ? [{ field: 'token', message: 'must not be provider without an identity provider' }]
    : []),
  ...(hasWebRoot && row.hosts === undefined && row.paths?.includes('/')
    ? [{ field: 'paths', message: 'must not contain / together with WEB_ROOT, except for some hosts' }]
    : [])
]

const pathErrors = (row: Row, others: readonly Row[]): FieldError[] =>
  (row.paths ?? []).flatMap((path, index, paths) => {
    const field = `paths/${index}`
    const prefix = gatewayPrefixOf(path)
    if (prefix !== null) return [{ field, message: `must not be ${path}: ${prefix} is a path of the gateway` }]
    if (paths.slice(0, index).some((other) => isSamePath(other, path)))
      return [{ field, message: `must not be ${path} again` }]
    const other = others.find(
      (other) => other.paths?.some((each) => isSamePath(each, path)) && haveSameHost(row, other)
    )
    if (other === undefined) return []
    return [{ field, message: `must not be ${path}, which ${other.name ?? 'another entry'} has for the same hosts` }]
  })

/** Paths that differ in spelling only are the same to some servers. */
const isSamePath = (one: string, other: string): boolean => foldedPath(one) === foldedPath(other)

const haveSameHost = ({ hosts }: Row, { hosts: others }: Row): boolean =>
  hosts === undefined || others === undefined
    ? hosts === others
    : hosts.some((host) => others.some((other) => host.toLowerCase() === other.toLowerCase()))

const prefixErrors = ({ strip_prefix: prefix, paths }: Row): FieldError[] => {
  if (paths === undefined) return []
  const field = 'strip_prefix'
  if (prefix === true)
    return paths.length === 1 ? [] : [{ field, message: 'must be a path, because the entry has several paths' }]
  if (typeof prefix !== 'string' || paths.every((path) => isUnder(prefix, path))) return []
  return [{ field, message: 'must be a path that all paths of the entry begin with' }]
}

const ACCESS_FIELDS = ['public_paths', 'strict_paths', 'admin_paths'] as const

const accessErrors = (row: Row): FieldError[] =>
  ACCESS_FIELDS.flatMap((name, index) =>
    (row[name] ?? []).flatMap((path, position) => {
      const field = `${name}/${position}`
      if (row.paths?.some((prefix) => isUnder(prefix, path)) === false)
        return [{ field, message: `must be below a path of the entry, not ${path}` }]
      const other = ACCESS_FIELDS.slice(0, index).find((field) => row[field]?.includes(path))
      return other === undefined ? [] : [{ field, message: `must not be ${path}, which is also in ${other}` }]
    })
  )

/** As in the settings, a path cannot be in a list of public paths and in one of paths that need a token. */
const openedPaths = ({ public_paths: paths = [] }: Row, { access }: UpstreamRules): FieldError[] =>
  paths.flatMap((path, index) => {
    const list = access.admin.includes(path) ? 'ADMIN' : access.strict.includes(path) ? 'STRICT' : null
    const field = `public_paths/${index}`
    return list === null ? [] : [{ field, message: `must not be ${path}, which is also in GATEWAY_${list}_PATHS` }]
  })
