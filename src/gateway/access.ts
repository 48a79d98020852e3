import type { Description } from '../openapi/description.js'
import type { AccessLevel } from '../shared/access-level.js'

// Access rules by canonical path.

/** `write`: a verified token on write requests; the backend decides about reads. */
export type Access = AccessLevel | 'write'

/** Path prefixes by the access that they need; `strict` is the level `user`, named like its setting. Complete segments count: `/api/admin` does not contain `/api/administrators`. */
export interface AccessPaths {
  /** The access of all other paths. */
  readonly others: 'write' | 'user'
  readonly public: readonly string[]
  readonly strict: readonly string[]
  readonly admin: readonly string[]
}

/** Sessions. Of the paths below it, backends receive the declared ones only, because it needs no token. */
export const AUTH_PREFIX = '/api/auth'

/** The internal API has a listener of its own. No other one forwards its paths: they may carry its key. */
export const INTERNAL_PREFIX = '/api/internal'

/** Needed before a session exists. The development login is served outside production only. */
export const ALWAYS_PUBLIC_PATHS: readonly string[] = [AUTH_PREFIX, '/api/health', '/api/dev-login']

export const DEFAULT_ACCESS_PATHS: AccessPaths = {
  others: 'write',
  public: ALWAYS_PUBLIC_PATHS,
  strict: ['/api/audit'],
  admin: ['/api/admin']
}

/** Whether the prefix is the path or one of its parents. */
export const isUnder = (prefix: string, path: string): boolean =>
  path.startsWith(prefix) && (path.length === prefix.length || path[prefix.length] === '/' || prefix === '/')

/** The access that each path needs. Of several prefixes that contain a path, the longest counts. */
export class AccessRules {
  readonly #others: Access
  readonly #prefixes: readonly (readonly [string, Access])[]
  /** Prefixes whose other spellings are rejected: see `http/known-paths.ts`. */
  readonly protectedPaths: readonly string[]

  constructor(paths: AccessPaths = DEFAULT_ACCESS_PATHS) {
    const entries = (prefixes: readonly string[], access: Access) => prefixes.map((prefix) => [prefix, access] as const)
    const prefixes = new Map([
      ...entries(paths.strict, 'user'),
      ...entries(paths.admin, 'admin'),
      ...entries([...paths.public, ...ALWAYS_PUBLIC_PATHS], 'public')
    ])
    this.#others = paths.others
    this.#prefixes = [...prefixes].toSorted(([one], [other]) => other.length - one.length)
    this.protectedPaths = [...paths.strict, ...paths.admin]
  }

  /** `stated` is the level of the route. It can make a path stricter, but no path more open that needs a session. */
  accessOf(path: string, stated: AccessLevel | null = null): Access {
    const access = this.#accessOfPath(path)
    if (stated === null || access === 'admin' || (access === 'user' && stated === 'public')) return access
    return stated
  }

  #accessOfPath(path: string): Access {
    for (const [prefix, access] of this.#prefixes) if (isUnder(prefix, path)) return access
    return this.#others
  }
}

/** The operations of an OpenAPI description that need no token, such as `GET /api/floors`. */
export const publicOperations = (description: Pick<Description, 'paths'> | null, rules: AccessRules): string[] =>
  (description?.paths ?? [])
    .flatMap(({ operations }) => operations)
    .filter(({ template, access }) => rules.accessOf(template, access) === 'public')
    .map(({ method, template }) => `${method} ${template}`)

export const READING_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])
export const WRITE_METHODS: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])
/** The methods that the gateway serves. Node's parser reads about thirty more. */
export const SERVED_METHODS: ReadonlySet<string> = new Set([...READING_METHODS, ...WRITE_METHODS].toSorted())

export const isApiPath = (path: string): boolean => path.startsWith('/api/')

// The client endpoints of the relay, which the gateway serves if `RELAY_UPSTREAM` is set.
export const RELAY_CONNECTION_PREFIX = '/connection'
export const RELAY_EMULATION_PATH = '/emulation'

export const isRelayPath = (path: string): boolean =>
  path.startsWith(`${RELAY_CONNECTION_PREFIX}/`) || path === RELAY_EMULATION_PATH

/** A browser calls these before it can hold a CSRF token. */
const CSRF_EXEMPT_PATHS: ReadonlySet<string> = new Set([
  '/api/auth/login',
  '/api/auth/backend-login',
  '/api/auth/csrf-token',
  '/api/health'
])

/** Whether a request must carry a CSRF token. */
export const needsCsrfToken = (method: string, path: string): boolean =>
  WRITE_METHODS.has(method) && isApiPath(path) && !CSRF_EXEMPT_PATHS.has(path)

/** Not login attempts: the login limit must not prevent a logout. */
const NO_LOGIN_PATHS: ReadonlySet<string> = new Set(['/api/auth/logout', '/api/auth/csrf-token'])

/** Whether a request counts towards the login limit. */
export const isLoginAttempt = (method: string, path: string): boolean =>
  method === 'POST' && path.startsWith('/api/auth/') && !NO_LOGIN_PATHS.has(path)
