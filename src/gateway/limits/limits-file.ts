import { FormatRegistry, type Static, Type } from '@sinclair/typebox'
import { toCanonicalPath } from '../../shared/request-path.js'
import { type FileValue, readListFile } from '../../shared/settings-file.js'
import { SERVED_METHODS } from '../access.js'
import { isLimited, type LimitedPath, limitedPath, type RequestedPath } from './limited-path.js'

// The file that GATEWAY_LIMITS names: a list of limits.

const MAX_RATE = 1_000_000

FormatRegistry.Set('limited-path', (text) => {
  const example = text.replace(/\{[^{}/]+\}/g, 'x')
  return toCanonicalPath(example) === example && (text === '/' || !text.endsWith('/'))
})

const LimitSchema = Type.Object(
  {
    name: Type.String({ pattern: '^[a-z0-9-]{1,64}$', rule: 'lower-case letters, digits and -, at most 64' }),
    paths: Type.Array(
      Type.String({ format: 'limited-path', rule: 'a path such as /api/reports, without a slash at its end' }),
      {
        minItems: 1,
        rule: 'a list of paths'
      }
    ),
    methods: Type.Optional(
      Type.Array(Type.Union([...SERVED_METHODS].map((method) => Type.Literal(method))), {
        minItems: 1,
        rule: `a list of ${[...SERVED_METHODS].join(', ')}`
      })
    ),
    by: Type.Union([Type.Literal('user'), Type.Literal('address'), Type.Literal('both')], {
      rule: 'user, address or both'
    }),
    rate: Type.Integer({ minimum: 1, maximum: MAX_RATE, rule: `a whole number from 1 to ${MAX_RATE}` }),
    per_s: Type.Optional(Type.Integer({ minimum: 1, maximum: 86_400, rule: 'a whole number from 1 to 86400' })),
    burst: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_RATE, rule: `a whole number from 1 to ${MAX_RATE}` }))
  },
  { additionalProperties: false }
)

/** One limit: a token bucket for each user or address. */
export interface RequestLimit {
  readonly name: string
  /** Prefixes of paths; a path with parameters such as `/api/zones/{id}` is that route only. */
  readonly paths: readonly LimitedPath[]
  /** Null for all methods. */
  readonly methods: ReadonlySet<string> | null
  readonly by: 'user' | 'address' | 'both'
  /** The number of requests at once: the size of the bucket. */
  readonly burst: number
  /** The time after which one more request is allowed, in milliseconds. */
  readonly intervalMs: number
}

export interface LimitsFile {
  readonly limits: readonly RequestLimit[]
  /** The routes that the limits name, such as `/api/zones/{id}`. */
  readonly routes: readonly FileValue[]
}

/** The limits in the file. Errors are added to the list, one line each. */
export const readLimits = (path: string, errors: string[]): LimitsFile => {
  const file = readListFile('GATEWAY_LIMITS', path, LimitSchema)
  errors.push(...file.errors)
  const names = new Set<string>()
  for (const [index, { name }] of file.checkable.entries()) {
    if (name === undefined) continue
    if (names.has(name)) errors.push(file.error(index, 'name', 'must be unique'))
    names.add(name)
  }
  const routes = file.checkable.flatMap(({ paths = [] }, index) =>
    paths.map((value, position) => ({
      value,
      error: (message: string) => file.error(index, `paths/${position}`, message)
    }))
  )
  return { limits: file.entries.map(limitOf), routes: routes.filter(({ value }) => value.includes('{')) }
}

/** The prefixes that limits name. */
export const limitPrefixes = (limits: readonly RequestLimit[]): string[] =>
  limits.flatMap(({ paths }) => paths.map(({ path }) => path)).filter((path) => !path.includes('{'))

/** One line for each route that a limit names and that is not declared. */
export const routeErrors = (routes: readonly FileValue[], templates: readonly string[]): string[] => {
  const known = new Set(templates)
  return routes
    .filter(({ value }) => !known.has(value))
    .map(({ value, error }) => error(`must not be ${value}, which is not a route`))
}

const limitOf = ({ name, paths, methods, by, rate, per_s: perS = 1, burst = rate }: Static<typeof LimitSchema>) => ({
  name,
  paths: paths.map(limitedPath),
  // A backend does the work of GET for HEAD too.
  methods: methods === undefined ? null : new Set<string>(methods.includes('GET') ? [...methods, 'HEAD'] : methods),
  by,
  burst,
  intervalMs: (perS * 1000) / rate
})

/** Whether a limit applies to a request. */
export const appliesTo = ({ paths, methods }: RequestLimit, method: string, requested: RequestedPath): boolean =>
  (methods === null || methods.has(method)) && paths.some((path) => isLimited(path, requested))
