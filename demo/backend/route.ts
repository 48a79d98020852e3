import type { FastifyRequest } from 'fastify'
import type { Method, RouteDeclaration } from '../../src/gateway/routes/declare.js'
import { routeTables } from '../../src/gateway/routes/index.js'
import type { Access, Caller } from './auth/permissions.js'
import type { Tokens } from './auth/tokens.js'
import type { Database, Row } from './database/database.js'
import type { Query } from './paging.js'
import type { BuildingLayout } from './site/layout.js'
import type { Fields, World } from './world.js'

/** All that routes work with, whatever is asked. */
export interface Backend extends World {
  readonly database: Database
  readonly tokens: Tokens
  readonly site: readonly BuildingLayout[]
  readonly relayUrl: string
}

/** One request, and what is needed to answer it. */
export interface Call extends Omit<Backend, 'database'>, World {
  readonly params: Readonly<Record<string, string>>
  readonly query: Query
  readonly body: Fields
  /** There unless the route is public. */
  readonly caller: Caller | null
  readonly request: FastifyRequest
}

/** Answered with `{ success: true, data }`. Whatever a route does for somebody who is signed in is done in whole or not at all. */
export type Run = (call: Call) => unknown

/** Who may ask: a permission, as `zones.read`, or something else. */
export type May = Access | `${string}.${string}`

export interface Handler {
  readonly may: May
  readonly run: Run
  /** The status of a success, where it is not 200. */
  readonly status?: number
  /** For the routes that cost more than others. */
  readonly perMinute?: number
  /** For uploads, in bytes. */
  readonly bodyLimit?: number
}

export type RouteKey = `${Method} /api/${string}`

/** What the gateway declares, by method and path. */
export const declared: ReadonlyMap<string, RouteDeclaration> = new Map(
  routeTables.flatMap(({ rows }) => rows).map((row) => [`${row.method} ${row.path}`, row])
)

/** Under the same names. */
export type Handlers = Readonly<Record<RouteKey, Handler>>

export const handler = (may: May, run: Run, more: Omit<Handler, 'may' | 'run'> = {}): Handler => ({ may, run, ...more })

/** A list that is longer than what is answered. */
export class PartOfList {
  readonly rows: readonly Row[]
  readonly meta: { readonly total: number; readonly limit: number; readonly offset: number }

  constructor(rows: readonly Row[], meta: PartOfList['meta']) {
    this.rows = rows
    this.meta = meta
  }
}

/** An answer that is not JSON. */
export class FileAnswer {
  readonly mediaType: string
  readonly content: string | Buffer
  readonly name: string | null

  /** With a name it is saved, without one it is shown. */
  constructor(mediaType: string, content: string | Buffer, name: string | null = null) {
    this.mediaType = mediaType
    this.content = content
    this.name = name
  }
}

/** Only for routes that are not public: the access check has seen to it. */
export const callerOf = ({ caller }: Call): Caller => {
  if (caller === null) throw new Error('a route without a caller asks who it is')
  return caller
}

export const idOf = ({ params: { id, floorId, contactId, deviceId } }: Call): string =>
  id ?? floorId ?? contactId ?? deviceId ?? ''

export const idsIn = (body: Fields): string[] => (Array.isArray(body.ids) ? body.ids.map(String) : [])
