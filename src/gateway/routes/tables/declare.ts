import type { TSchema } from '@sinclair/typebox'
import type { AccessLevel } from '../../../shared/access-level.js'

// Routes are data: each domain has a table in this folder, and `../mount-routes.ts` registers all of them. The files of this folder
// import nothing of the server, so that the browser's client can be generated from the same declarations.
//
// A new route needs:
// 1. the schema of its body in `schemas/`, with an `$id`, and its row in `schemas/registry.ts`;
// 2. a row in the table of its domain, or a new table in `../index.ts`;
// 3. for a route with `local(…)`: its documented responses in the row, and a handler in `../session-routes.ts` or `../../health/health-routes.ts`.
//    The gateway does not start without either;
// 4. `npm run client-api`, which generates the call of the client library;
// 5. its implementation in `demo/backend/routes/`. The demo does not start without it.

export type HttpMethod = RouteDeclaration['method']

interface RouteBase {
  /** In the router's syntax: `/api/zones/:id`. */
  readonly path: `/api/${string}`
  readonly summary: string
  /** The access level of the route, unless its path is strict or admin and needs more. */
  readonly access?: AccessLevel
  /** Whether the parameters of the path are secrets, which logs must not contain. */
  readonly secretPath?: boolean
}

type WriteMethod = 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** Has no body. */
export interface ReadRoute extends RouteBase {
  readonly method: 'GET'
  /** `stream` is a file. */
  readonly kind: 'json' | 'stream'
  readonly body: null
  readonly bodyOptional: false
}

/** Has a JSON body with a schema. A write request without one does not compile. */
export interface WriteRoute extends RouteBase {
  readonly method: WriteMethod
  readonly kind: 'json'
  readonly body: TSchema
  /** Whether the body may be omitted. */
  readonly bodyOptional: boolean
}

/** Has a multipart form that is streamed to the backend. */
export interface UploadRoute extends RouteBase {
  readonly method: WriteMethod
  readonly kind: 'upload'
  readonly body: null
  readonly bodyOptional: false
  readonly form: TSchema
}

/** A response of a handler of the gateway, as documented. */
export interface LocalResponse {
  readonly description: string
  readonly body?: TSchema
  /** Cookies that the response sets or clears. */
  readonly cookies?: readonly string[]
}

export interface LocalDocumentation {
  readonly description: string
  /** By status: `200`, `2XX` or `default`. */
  readonly responses: Readonly<Record<string, LocalResponse>>
  /** Whether the route fails while the backend is unreachable. */
  readonly needsBackend: boolean
}

type Local<Route> = Omit<Route, 'kind'> & { readonly kind: 'local'; readonly documentation: LocalDocumentation }

/** Has a handler of the gateway. The other kinds are forwarded. */
export type LocalRoute = Local<ReadRoute> | Local<WriteRoute>

export type RouteDeclaration = ReadRoute | WriteRoute | UploadRoute | LocalRoute

export interface RouteTable {
  readonly domain: string
  readonly about: string
  readonly rows: readonly RouteDeclaration[]
}

/** A table of routes. Its rows are made with the functions below. */
export const defineRoutes = (table: RouteTable): RouteTable => table

type Path = RouteBase['path']

/** The path in the syntax of OpenAPI: `/api/zones/{id}`. */
export const pathTemplate = (path: string): string => path.replace(/:(\w+)/g, '{$1}')

const writeRoute =
  (method: WriteMethod, bodyOptional: boolean) =>
  (path: Path, summary: string, body: TSchema): WriteRoute => ({
    method,
    path,
    summary,
    kind: 'json',
    body,
    bodyOptional
  })

export const get = (path: Path, summary: string): ReadRoute => ({
  method: 'GET',
  path,
  summary,
  kind: 'json',
  body: null,
  bodyOptional: false
})

export const post = writeRoute('POST', false)
export const put = writeRoute('PUT', false)
export const patch = writeRoute('PATCH', false)
export const del = writeRoute('DELETE', true)

/** An action that needs no body, such as `POST /api/users/:id/unlock`. A body is validated if there is one. */
export const action = writeRoute('POST', true)

export const withOptionalBody = (route: WriteRoute): WriteRoute => ({ ...route, bodyOptional: true })

/** The route with an access level of its own. */
export const withAccess = <Route extends RouteDeclaration>(access: AccessLevel, route: Route): Route => ({
  ...route,
  access
})

/** The route with a path that contains a secret: logs, audit records and spans have the path up to its first parameter. */
export const withSecretPath = <Route extends RouteDeclaration>(route: Route): Route => ({ ...route, secretPath: true })

/** The response is a file, which may be large. */
export const download = (path: Path, summary: string): ReadRoute => ({ ...get(path, summary), kind: 'stream' })

export const upload = (path: Path, summary: string, form: TSchema): UploadRoute => ({
  method: 'POST',
  path,
  summary,
  kind: 'upload',
  body: null,
  bodyOptional: false,
  form
})

/** A handler of the gateway responds. */
export const local = <Route extends ReadRoute | WriteRoute>(
  route: Route,
  documentation: LocalDocumentation
): Local<Route> => ({ ...route, kind: 'local', documentation })
