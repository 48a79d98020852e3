import type { SwaggerTransform, SwaggerTransformObject } from '@fastify/swagger'
import type { TSchema } from '@sinclair/typebox'
import type { FastifyInstance, FastifySchema, HTTPMethods } from 'fastify'
import { ErrorBodySchema } from '../../../schemas/error-body.js'
import { PagingSchema } from '../../../schemas/paging.js'
import { type AccessRules, READING_METHODS, WRITE_METHODS } from '../access.js'
import type { DeclaredRoutes } from '../custom-routes/custom-routes.js'
import { GatewayError } from '../errors.js'
import { errorExamples, errorsOfAnyRequest } from '../routes/error-responses.js'
import { rejectedRoute, type UnknownPaths } from '../routes/mount-routes.js'
import { byReference } from '../routes/route-schema.js'
import { pathTemplate, type RouteDeclaration } from '../routes/tables/declare.js'
import type { Upstream } from '../upstreams/upstream.js'

/** Never forwarded to the backend, whether the documentation is on or off. */
export const API_DOCS_PATHS = ['/api/docs', '/api/docs/json', '/api/docs/style.css'] as const

const [PAGE_PATH, DOCUMENT_PATH, STYLE_PATH] = API_DOCS_PATHS

export interface ApiDocsOptions {
  readonly declared: DeclaredRoutes
  readonly access: AccessRules
  readonly upstreams: readonly Pick<Upstream, 'name' | 'hosts' | 'description' | 'access'>[]
  readonly unknownPaths: UnknownPaths
  /** The version in the document; null if the documentation is off. */
  readonly version: string | null
}

/**
 * Serves the API description as a page and as an OpenAPI document, which @fastify/swagger makes from the schemas of the
 * routes that are registered after this. It is loaded only if the documentation is on.
 */
export const apiDocs = async (app: FastifyInstance, options: ApiDocsOptions): Promise<void> => {
  const { version, declared, unknownPaths } = options
  const { tables } = declared
  if (version === null) {
    for (const path of API_DOCS_PATHS)
      rejectedRoute(app, app.supportedMethods, path, () => new GatewayError('NOT_FOUND'))
    return
  }
  const { default: swagger } = await import('@fastify/swagger')
  const rows = tables.flatMap((table) => table.rows)
  for (const schema of namedSchemas(rows)) app.addSchema(schema)
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Gatehouse', version, description: introduction(errorsOfAnyRequest, unknownPaths) },
      servers: [{ url: '/' }],
      tags: tables.map(({ domain, about }) => ({ name: domain, description: about })),
      components: { examples: { ...errorExamples() }, securitySchemes: SECURITY_SCHEMES }
    },
    convertConstToEnum: false,
    refResolver: { buildLocalReference: ({ $id }) => String($id) },
    transform: documentedRequest(declared.isBuiltIn),
    transformObject: await completeDocument(rows, options)
  })

  rejectWriteRequests(app)
  await serveDocument(app)
}

const serveDocument = async (app: FastifyInstance): Promise<void> => {
  const [{ apiPage }, { PAGE_STYLE }] = await Promise.all([import('./page.js'), import('./page-style.js')])
  let page: string | null = null
  const serve = (url: string, type: string, read: () => string): void => {
    // Without HEAD here, the catch-all would forward it.
    const method: HTTPMethods[] = ['GET', 'HEAD']
    app.route({
      method,
      url,
      handler: async (_request, reply) => {
        reply.header('cache-control', 'no-cache').type(`${type}; charset=utf-8`)
        return read()
      },
      // After the hook that adds the policy of all other responses.
      onSend: async (_request, reply) => {
        reply.header('content-security-policy', PAGE_CSP)
      }
    })
  }
  // The document is complete when all routes are registered.
  serve(PAGE_PATH, 'text/html', () => {
    page ??= apiPage(app.swagger(), { document: DOCUMENT_PATH, style: STYLE_PATH })
    return page
  })
  serve(DOCUMENT_PATH, 'application/json', () => JSON.stringify(app.swagger()))
  serve(STYLE_PATH, 'text/css', () => PAGE_STYLE)
}

/** The schemas that the document refers to by name. */
const namedSchemas = (rows: readonly RouteDeclaration[]): ReadonlySet<TSchema> => {
  const responses = rows.flatMap((row) => (row.kind === 'local' ? Object.values(row.documentation.responses) : []))
  const bodies = [...rows, ...responses].flatMap(({ body }) => body ?? [])
  return new Set([ErrorBodySchema, ...bodies].filter(({ $id }) => $id !== undefined))
}

/** Adds the parts of a request that the gateway documents and does not validate. */
const documentedRequest =
  (isBuiltIn: boolean): SwaggerTransform =>
  ({ schema, url, route }) => {
    const row = route.config?.declaration
    if (row === undefined) return { url, schema: { hide: true } }
    return { url, schema: { ...schema, ...bodyOf(row), ...(isBuiltIn && queryOf(row)) } }
  }

const bodyOf = (row: RouteDeclaration): FastifySchema => {
  if (row.kind === 'upload') return { consumes: ['multipart/form-data'], body: row.form }
  return row.body === null ? {} : { body: byReference(row.body) }
}

/** The whole query is forwarded, and the backend decides which parameters a list accepts. Most accept these. */
const queryOf = ({ method, kind, path }: RouteDeclaration): FastifySchema =>
  method === 'GET' && kind !== 'local' && !/\/:\w+$/.test(path) ? { querystring: PagingSchema } : {}

/** Adds the operations of OpenAPI descriptions, and corrects that @fastify/swagger documents every body as required. */
const completeDocument = async (
  rows: readonly RouteDeclaration[],
  { declared: { description }, access, upstreams }: ApiDocsOptions
): Promise<SwaggerTransformObject> => {
  const { addOperations } = await import('./add-operations.js')
  return (documents) => {
    if (!('openapiObject' in documents)) throw new TypeError('not an OpenAPI document')
    const { openapiObject } = documents
    for (const described of [{ name: null, hosts: null, description, access }, ...upstreams])
      addOperations(openapiObject, described)
    for (const { method, path } of rows.filter(({ bodyOptional }) => bodyOptional)) {
      const item = openapiObject.paths?.[pathTemplate(path)]
      const body = item?.[LOWER_CASE[method]]?.requestBody
      if (body !== undefined && 'content' in body) body.required = false
    }
    return openapiObject
  }
}

const LOWER_CASE = { GET: 'get', POST: 'post', PUT: 'put', PATCH: 'patch', DELETE: 'delete' } as const

const rejectWriteRequests = (app: FastifyInstance): void => {
  const allow = [...READING_METHODS].join(', ')
  const error = () => new GatewayError('METHOD_NOT_ALLOWED', { headers: { allow } })
  for (const path of API_DOCS_PATHS) rejectedRoute(app, [...WRITE_METHODS], path, error)
}

/** The page has no script. Its icon is a data URL. */
const PAGE_CSP =
  "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const SECURITY_SCHEMES = {
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: 'auth_token',
    description: 'The app token, set at sign-in. Scripts cannot read it.'
  },
  csrf: {
    type: 'apiKey',
    in: 'header',
    name: 'X-CSRF-Token',
    description: 'Must be equal to the cookie csrf_token, which comes from /api/auth/csrf-token.'
  }
} as const

const introduction = (errors: readonly GatewayError[], unknownPaths: UnknownPaths): string =>
  `
The gateway checks each request and forwards it to the same path of the backend. The response of the backend is returned
unchanged. ${unknownPaths === 'forward' ? 'Requests to all other paths under `/api/` are forwarded without a schema, except below `/api/auth`.' : 'There are no other paths under `/api/`.'}

Write requests require a session and a CSRF token. The token comes from \`/api/auth/csrf-token\` and is sent in the header
\`X-CSRF-Token\`. Reads that do not list a session are forwarded, and the backend decides.
Sessions, CSRF tokens and the login limit are enforced in production only.

An error response of the gateway has the header \`X-Gateway-Error\` and the body \`ErrorBody\`; an error response of the
backend has neither. A write request with a method that is not listed for a path is rejected with \`METHOD_NOT_ALLOWED\` (405),
a different spelling of a listed path with \`AMBIGUOUS_PATH\` (400). Any request can also fail with these errors:

${errors.map(({ statusCode, code, message }) => `- ${statusCode} \`${code}\`: ${message}`).join('\n')}
`.trim()
