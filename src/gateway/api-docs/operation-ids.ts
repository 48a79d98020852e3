import type { Method, RouteDeclaration } from '../routes/declare.js'

/** What an operation does to one thing among many: `/api/zones/:id`. */
const ON_ONE: Readonly<Record<Method, string>> = {
  GET: 'read',
  POST: 'act',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete'
}

/** To all of them: `/api/zones`. */
const ON_MANY: Readonly<Record<Method, string>> = {
  GET: 'list',
  POST: 'create',
  PUT: 'updateMany',
  PATCH: 'patchMany',
  DELETE: 'deleteMany'
}

/** To a thing that there is only one of: `/api/battery/thresholds`. */
const ON_THE_ONLY: Readonly<Record<Method, string>> = { ...ON_ONE, POST: 'post' }

/**
 * A name for each operation, made from nothing but paths and methods: `zones.create`, `users.resetPassword`. Programs call
 * what they generate by these names, so a changed summary must not change one.
 */
export const operationIds = (rows: readonly RouteDeclaration[]): ReadonlyMap<RouteDeclaration, string> => {
  const collections = new Set(rows.filter(({ path }) => endsInParameter(path)).map(({ path }) => parentOf(path)))
  const isAlone = ({ path }: RouteDeclaration): boolean => rows.filter((row) => row.path === path).length === 1

  const verb = (row: RouteDeclaration): string | null => {
    const { method, path, kind } = row
    if (endsInParameter(path)) return ON_ONE[method]
    if (collections.has(path)) return ON_MANY[method]
    // A path of one method says it all by itself, as `/api/auth/login` does.
    if (isAlone(row) && namesIn(path).length > 1) return null
    return kind === 'upload' ? 'upload' : ON_THE_ONLY[method]
  }

  return new Map(rows.map((row) => [row, [...namesIn(row.path), verb(row) ?? []].flat().join('.')]))
}

const endsInParameter = (path: string): boolean => /\/:\w+$/.test(path)

const parentOf = (path: string): string => path.slice(0, path.lastIndexOf('/'))

/** The words of a path: those that are the same in every request. */
const namesIn = (path: string): readonly string[] =>
  path
    .slice('/api/'.length)
    .split('/')
    .filter((segment) => !segment.startsWith(':'))
    .map((segment) => segment.replace(/-(\w)/g, (_dash, letter: string) => letter.toUpperCase()))
