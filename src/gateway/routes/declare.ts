import type { TSchema } from '@sinclair/typebox'

// Routes are data: each domain lists what exists, and one piece of code (`proxy/mount.ts`) makes it work. This file and the
// tables import nothing of the server, so that the browser's client can be made from the same declarations.

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export interface RouteDeclaration {
  readonly method: Method
  /** As the router takes it: `/api/zones/:id`. */
  readonly path: `/api/${string}`
  readonly summary: string
  readonly kind: RouteKind
  /** What the body must look like; null where the route takes none. */
  readonly body: TSchema | null
  /** Whether the body may be left out. */
  readonly bodyOptional: boolean
}

export type RouteKind =
  /** Forwarded; a body is JSON and is checked against its schema first. */
  | 'json'
  /** Forwarded; the body is a multipart form that streams through. */
  | 'upload'
  /** Forwarded; the answer is a file. */
  | 'stream'
  /** Answered with the help of code of ours: sessions, health. */
  | 'local'

export interface RouteTable {
  readonly domain: string
  readonly about: string
  readonly rows: readonly RouteDeclaration[]
}

type Path = RouteDeclaration['path']

const row =
  (method: Method) =>
  (path: Path, summary: string, body: TSchema): RouteDeclaration => ({
    method,
    path,
    summary,
    kind: 'json',
    body,
    bodyOptional: false
  })

export const get = (path: Path, summary: string): RouteDeclaration => ({
  method: 'GET',
  path,
  summary,
  kind: 'json',
  body: null,
  bodyOptional: false
})

// A mutation takes its schema as a required argument: one that forgot to validate does not compile.
export const post = row('POST')
export const put = row('PUT')
export const patch = row('PATCH')
export const del = (path: Path, summary: string, body: TSchema): RouteDeclaration =>
  withOptionalBody(row('DELETE')(path, summary, body))

/** An action that says all in its path; what is sent along is checked all the same. */
export const action = (path: Path, summary: string, body: TSchema): RouteDeclaration =>
  withOptionalBody(post(path, summary, body))

export const withOptionalBody = (declaration: RouteDeclaration): RouteDeclaration => ({
  ...declaration,
  bodyOptional: true
})

/** An answer that is a file, and may be large. */
export const download = (path: Path, summary: string): RouteDeclaration => ({ ...get(path, summary), kind: 'stream' })

export const upload = (path: Path, summary: string): RouteDeclaration => ({
  method: 'POST',
  path,
  summary,
  kind: 'upload',
  body: null,
  bodyOptional: false
})

/** Not simply forwarded: a handler of ours answers. */
export const local = (declaration: RouteDeclaration): RouteDeclaration => ({ ...declaration, kind: 'local' })
