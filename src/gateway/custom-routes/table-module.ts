import { basename, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { FormatRegistry, KindGuard, type TSchema } from '@sinclair/typebox'
import { ACCESS_LEVELS } from '../../shared/access-level.js'
import { SettingsError } from '../../shared/env.js'
import { messageOf } from '../../shared/error-message.js'
import { isObject } from '../../shared/is-object.js'
import { toCanonicalPath } from '../../shared/request-path.js'
import { pathTemplate, type RouteDeclaration, type RouteTable } from '../routes/tables/declare.js'
import { compileOnce } from '../routes/validation.js'

/**
 * Imports an ES module and returns the route tables that it exports: each export is a table or a list of tables. Throws a
 * `SettingsError` with one line per error.
 */
export const importTables = async (file: string, timeoutMs = 30_000): Promise<readonly RouteTable[]> => {
  const name = basename(file)
  const { href } = pathToFileURL(resolve(file))
  let exports: Readonly<Record<string, unknown>>
  try {
    exports = await withinTime(import(href), timeoutMs)
  } catch (error) {
    throw new SettingsError([oneLine(`${name}${positionIn(href, error)}: ${messageOf(error)}`)])
  }
  const checker = new TableChecker()
  const tables = Object.entries(exports).flatMap(([exported, value]) =>
    [value].flat().map((table: unknown, index) => {
      const location = Array.isArray(value) ? `${name}: ${exported}[${index}]` : `${name}: ${exported}`
      checker.checkTable(table, location)
      return table as RouteTable // the checker reports everything else
    })
  )
  if (tables.length === 0) checker.errors.push(`${name}: exports no route table`)
  if (checker.errors.length > 0) throw new SettingsError(checker.errors)
  return tables
}

/** Without a timer, the process would end in silence if the module awaits something that never happens. */
const withinTime = async <Result>(promise: Promise<Result>, timeoutMs: number): Promise<Result> => {
  const timeout = new AbortController()
  const expired = setTimeout(timeoutMs, undefined, { signal: timeout.signal }).then(() => {
    throw new Error(`not loaded within ${timeoutMs / 1000} s, it awaits something`)
  })
  try {
    return await Promise.race([promise, expired])
  } finally {
    timeout.abort()
    expired.catch(() => undefined)
  }
}

/** The line and column of an error in the module, such as `:3:7`; empty for a syntax error, which has no stack there. */
const positionIn = (href: string, error: unknown): string => {
  const stack = error instanceof Error ? (error.stack ?? '') : ''
  const index = stack.indexOf(`${href}:`)
  return index === -1 ? '' : (/^:\d+:\d+/.exec(stack.slice(index + href.length))?.[0] ?? '')
}

/** Checks tables that TypeScript may not have checked. */
export class TableChecker {
  readonly errors: string[] = []
  readonly #routes = new Map<string, string>()
  readonly #schemas = new Map<string, TSchema>()
  readonly #domains = new Set<string>()

  checkTable(table: unknown, location: string): void {
    if (!isObject(table) || typeof table.domain !== 'string' || !Array.isArray(table.rows)) {
      this.#report(location, 'is not a route table, make it with defineRoutes()')
      return
    }
    if (typeof table.about !== 'string') this.#report(location, 'needs the text "about"')
    if (this.#domains.has(table.domain)) this.#report(location, `the domain "${table.domain}" exists already`)
    this.#domains.add(table.domain)
    for (const [index, row] of table.rows.entries()) this.#checkRow(row, `${location}, row ${index + 1}`)
  }

  #report(location: string, message: string): void {
    this.errors.push(oneLine(`${location}: ${message}`))
  }

  #checkRow(row: unknown, position: string): void {
    if (!isObject(row) || !isMethod(row.method) || typeof row.path !== 'string') {
      this.#report(
        position,
        'is not a route, make it with get(), post() or another function of gatehouse-server/routes'
      )
      return
    }
    const location = `${position} (${row.method} ${row.path})`
    this.#checkPath(row.path, location)
    if (row.access !== undefined && !ACCESS_LEVELS.some((level) => level === row.access)) {
      this.#report(location, `access must be one of ${ACCESS_LEVELS.join(', ')}`)
    }
    if (row.secretPath !== undefined && typeof row.secretPath !== 'boolean') {
      this.#report(location, 'secretPath must be true or false')
    } else if (row.secretPath === true && !row.path.includes(':')) {
      this.#report(location, 'a secret path needs a parameter, such as /api/invitations/:token')
    }
    if (typeof row.summary !== 'string') this.#report(location, 'needs a summary')
    const key = `${row.method} ${pathTemplate(row.path).replace(/\{\w+\}/g, '{}')}`
    const other = this.#routes.get(key)
    if (other !== undefined) this.#report(location, `the same method and path as ${other}`)
    this.#routes.set(key, location)
    this.#checkBody(row, location)
  }

  #checkPath(path: string, location: string): void {
    const isTemplate =
      path.startsWith('/api/') && path.split('/').every((segment) => !/^:(?!\w+$)|.:|[*(){}?#]/.test(segment))
    if (!isTemplate) this.#report(location, 'the path must be like /api/zones/:id')
    else if (toCanonicalPath(path) === null) this.#report(location, 'requests with this path would be rejected')
  }

  #checkBody({ method, kind, body, form }: Readonly<Record<string, unknown>>, location: string): void {
    if (kind === 'upload') this.#checkSchema(form, `${location}, form`)
    else if (method === 'GET') {
      if (!(kind === 'json' || kind === 'stream') || body !== null)
        this.#report(location, 'make it with get() or download()')
    } else if (kind === 'json') this.#checkSchema(body, `${location}, body`)
    else this.#report(location, 'make it with post() or another function of gatehouse-server/routes')
  }

  #checkSchema(schema: unknown, location: string): void {
    if (!KindGuard.IsSchema(schema)) {
      this.#report(location, 'must be a TypeBox schema')
      return
    }
    const { $id } = schema
    if ($id !== undefined) {
      const other = this.#schemas.get($id)
      if (other !== undefined && other !== schema)
        this.#report(location, `there is another schema with the $id "${$id}"`)
      this.#schemas.set($id, schema)
    }
    for (const format of formatsIn(schema)) {
      if (!FormatRegistry.Has(format)) this.#report(location, `the format "${format}" is not registered`)
    }
    try {
      compileOnce(schema)
    } catch (error) {
      this.#report(location, messageOf(error))
    }
  }
}

const METHODS: readonly RouteDeclaration['method'][] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

const isMethod = (value: unknown): value is RouteDeclaration['method'] => METHODS.some((method) => method === value)

const formatsIn = (schema: TSchema): ReadonlySet<string> => {
  const formats = new Set<string>()
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    if (KindGuard.IsSchema(value) && typeof value.format === 'string') formats.add(value.format)
    for (const member of Object.values(value)) visit(member)
  }
  visit(schema)
  return formats
}

const oneLine = (text: string): string => text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
