import type { StaticDocumentSpec } from '@fastify/swagger'
import type { FastifyInstance, HTTPMethods } from 'fastify'
import { MUTATING_METHODS, READING_METHODS } from '../access.js'
import { GatewayError } from '../errors.js'
import { rejectedRoute } from '../routes/mount.js'
import type { OpenApiDocument } from './document.js'

/** Never forwarded to the backend, whether the documentation is on or off. */
export const API_DOCS_PATHS = ['/api/docs', '/api/docs/json'] as const

const [PAGE_PATH] = API_DOCS_PATHS

// Swagger UI sets inline styles. Everything else comes from its own files.
const PAGE_CSP = {
  'default-src': "'self'",
  'script-src': "'self'",
  'style-src': "'self' 'unsafe-inline'",
  'img-src': "'self' data:",
  'base-uri': "'none'",
  'object-src': "'none'",
  'frame-ancestors': "'none'"
}

/** Serves the API description as a page and as an OpenAPI document. The libraries are loaded only if it is on. */
export const apiDocs = async (app: FastifyInstance, document: OpenApiDocument | null): Promise<void> => {
  if (document === null) {
    for (const path of API_DOCS_PATHS)
      rejectedRoute(app, app.supportedMethods, path, () => new GatewayError('NOT_FOUND'))
    return
  }
  const allow = [...READING_METHODS].join(', ')
  for (const path of API_DOCS_PATHS)
    rejectedRoute(
      app,
      [...MUTATING_METHODS],
      path,
      () => new GatewayError('METHOD_NOT_ALLOWED', { headers: { allow } })
    )

  const [{ default: swagger }, { default: swaggerUi }] = await Promise.all([
    import('@fastify/swagger'),
    import('@fastify/swagger-ui')
  ])
  await app.register(async (scope) => {
    // Without HEAD here, the catch-all would forward it.
    scope.addHook('onRoute', (route) => {
      if (route.method === 'GET') route.method = GET_AND_HEAD
    })
    scope.addHook('onSend', (_request, reply, payload, done) => {
      if (!reply.hasHeader('cache-control')) reply.header('cache-control', 'no-cache')
      done(null, payload)
    })
    // The library's types describe OpenAPI 2 and 3.0; it serves any version.
    const specification = document as unknown as StaticDocumentSpec['document']
    await scope.register(swagger, { mode: 'static', specification: { document: specification } })
    await scope.register(swaggerUi, {
      routePrefix: PAGE_PATH,
      staticCSP: PAGE_CSP,
      theme: { title: `${document.info.title} API` },
      uiConfig: { docExpansion: 'none', filter: true, validatorUrl: null }
    })
  })
}

const GET_AND_HEAD: HTTPMethods[] = ['GET', 'HEAD']
