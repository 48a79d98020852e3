// Access rules by canonical path. Complete segments are compared, so that `/api/administrators` is not `/api/admin`.

export type Access =
  /** Never checked. */
  | 'public'
  /** A verified token on every method. */
  | 'strict'
  /** A verified token of an admin on every method. */
  | 'admin'
  /** A verified token on mutations; the backend decides about reads. */
  | 'mutations'

// By the first segment after `/api/`, for the path itself and all paths below it.
const ACCESS_BY_AREA: ReadonlyMap<string, Access> = new Map([
  ['auth', 'public'],
  ['health', 'public'],
  ['dev-login', 'public'],
  ['admin', 'admin'],
  ['audit', 'strict']
])

/** Areas whose other spellings are rejected: see `plugins/canonical-path.ts`. */
export const STRICT_AREAS: readonly string[] = ['admin', 'audit']

export const READING_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])
export const MUTATING_METHODS: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])
/** The methods that the gateway serves. Node's parser reads about thirty more. */
export const SERVED_METHODS: ReadonlySet<string> = new Set([...READING_METHODS, ...MUTATING_METHODS].toSorted())

export const isApiPath = (path: string): boolean => path.startsWith('/api/')

/** A browser calls these before it can hold a CSRF token. */
const CSRF_EXEMPT_PATHS: ReadonlySet<string> = new Set([
  '/api/auth/login',
  '/api/auth/backend-login',
  '/api/auth/csrf-token',
  '/api/health'
])

/** Whether a request must carry a CSRF token. */
export const needsCsrfToken = (method: string, path: string): boolean =>
  MUTATING_METHODS.has(method) && isApiPath(path) && !CSRF_EXEMPT_PATHS.has(path)

/** Not login attempts: the login limit must not prevent a logout. */
const NO_LOGIN_PATHS: ReadonlySet<string> = new Set(['/api/auth/logout', '/api/auth/csrf-token'])

/** Whether a request counts towards the login limit. */
export const isLoginAttempt = (method: string, path: string): boolean =>
  method === 'POST' && path.startsWith('/api/auth/') && !NO_LOGIN_PATHS.has(path)

const AREA_START = '/api/'.length

export const accessOf = (path: string): Access => {
  const end = path.indexOf('/', AREA_START)
  const area = end === -1 ? path.slice(AREA_START) : path.slice(AREA_START, end)
  return ACCESS_BY_AREA.get(area) ?? 'mutations'
}
