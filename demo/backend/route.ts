import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Method } from '../../src/gateway/routes/declare.js'
import type { Access, Caller } from './auth/permissions.js'
import type { Row, Statements, Value } from './database/database.js'
import type { Query } from './paging.js'
import type { Fields } from './records.js'

/** One request that may be made and whose body is good. */
export interface Call {
  readonly params: Readonly<Record<string, string>>
  readonly query: Query
  readonly body: Fields
  /** There unless the route is public. */
  readonly caller: Caller | null
  readonly request: FastifyRequest
  readonly reply: FastifyReply
}

/** Answered with `{ success: true, data }`. */
export type Run = (call: Call) => Promise<unknown>

export interface Handler {
  readonly access: Access
  readonly run: Run
  /** The status of a success, where it is not 200. */
  readonly status?: number
  /** For the routes that cost more than others. */
  readonly perMinute?: number
  /** For uploads, in bytes. */
  readonly bodyLimit?: number
}

export type RouteKey = `${Method} /api/${string}`

/** By method and path, as the gateway declares them. */
export type Handlers = Readonly<Partial<Record<RouteKey, Handler>>>

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

export const handler = (access: Access, run: Run, more: Omit<Handler, 'access' | 'run'> = {}): Handler => ({
  access,
  run,
  ...more
})

/** A route whose answer is what one statement finds. */
export const queryOn =
  (statements: Statements) =>
  (
    access: Access,
    sql: string,
    valuesOf: (call: Call) => readonly Value[] | Promise<readonly Value[]> = () => []
  ): Handler =>
    handler(access, async (call) => statements.rows(sql, await valuesOf(call)))

/** Only for routes that are not public: the access check has seen to it. */
export const callerOf = ({ caller }: Call): Caller => {
  if (caller === null) throw new Error('a route without a caller asks who it is')
  return caller
}

export const idOf = ({ params }: Call): string => params.id ?? params.floorId ?? params.contactId ?? ''

export const idsIn = (body: Fields): string[] => (Array.isArray(body.ids) ? body.ids.map(String) : [])
