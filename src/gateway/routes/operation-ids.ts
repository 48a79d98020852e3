import type { HttpMethod, RouteDeclaration } from './tables/declare.js'

/** Verbs for one item of a collection: `/api/zones/:id`. */
const ITEM_VERBS: Readonly<Record<HttpMethod, string>> = {
  GET: 'read',
  POST: 'act',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete'
}

/** Verbs for a collection: `/api/zones`. */
const COLLECTION_VERBS: Readonly<Record<HttpMethod, string>> = {
  GET: 'list',
  POST: 'create',
  PUT: 'updateMany',
  PATCH: 'patchMany',
  DELETE: 'deleteMany'
}

/** Verbs for a single resource: `/api/battery/thresholds`. */
const SINGLE_VERBS: Readonly<Record<HttpMethod, string>> = { ...ITEM_VERBS, POST: 'post' }

/**
 * An id for each operation, made from its path and method: `zones.create`, `users.resetPassword`. Generated clients use
 * the ids as function names, so they must not depend on the summary.
 */
export const operationIds = (rows: readonly RouteDeclaration[]): ReadonlyMap<RouteDeclaration, string> => {
  const collections = new Set(rows.filter(({ path }) => endsInParameter(path)).map(({ path }) => parentOf(path)))
  const isAlone = ({ path }: RouteDeclaration): boolean => rows.filter((row) => row.path === path).length === 1

  const verb = (row: RouteDeclaration): string | null => {
    const { method, path, kind } = row
    if (endsInParameter(path)) return ITEM_VERBS[method]
    if (collections.has(path)) return COLLECTION_VERBS[method]
    // A path with one method needs no verb, such as `/api/auth/login`.
    if (isAlone(row) && namesIn(path).length > 1) return null
    return kind === 'upload' ? 'upload' : SINGLE_VERBS[method]
  }

  return new Map(rows.map((row) => [row, [...namesIn(row.path), verb(row) ?? []].flat().join('.')]))
}

const endsInParameter = (path: string): boolean => /\/:\w+$/.test(path)

const parentOf = (path: string): string => path.slice(0, path.lastIndexOf('/'))

/** The segments of a path without its parameters, in camel case. */
const namesIn = (path: string): readonly string[] =>
  path
    .slice('/api/'.length)
    .split('/')
    .filter((segment) => !segment.startsWith(':'))
    .map((segment) => segment.replace(/-(\w)/g, (_dash, letter: string) => letter.toUpperCase()))
