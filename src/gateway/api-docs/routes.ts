import type { FastifyInstance } from 'fastify'
import { MUTATING_METHODS, READING_METHODS } from '../access.js'
import { GatewayError } from '../errors.js'
import { rejectedRoute } from '../routes/mount.js'
import type { OpenApiDocument } from './document.js'
import { apiPage } from './page.js'

/** Where they are, or would be. Neither these paths nor another spelling of one may end up at the backend. */
export const API_DOCS_PATHS = ['/api/docs', '/api/docs/json'] as const

/** Serves the description of the API, for people and for programs; null where nobody is to see it. */
export const apiDocs = (app: FastifyInstance, document: OpenApiDocument | null): void => {
  const [pagePath, jsonPath] = API_DOCS_PATHS
  if (document === null) {
    for (const path of API_DOCS_PATHS)
      rejectedRoute(app, app.supportedMethods, path, () => new GatewayError('NOT_FOUND'))
    return
  }
  serve(app, pagePath, 'text/html; charset=utf-8', () => apiPage(document, jsonPath))
  serve(app, jsonPath, 'application/json; charset=utf-8', () => JSON.stringify(document))
}

const ALLOW = [...READING_METHODS].join(', ')

const serve = (app: FastifyInstance, url: string, contentType: string, write: () => string): void => {
  // Written once, for the first who asks: most gateways are never asked.
  let text: string | null = null
  rejectedRoute(
    app,
    [...MUTATING_METHODS],
    url,
    () => new GatewayError('METHOD_NOT_ALLOWED', { headers: { allow: ALLOW } })
  )
  app.route({
    // Without HEAD here, the catch-all would ask the backend for it.
    method: ['GET', 'HEAD'],
    url,
    handler: (_request, reply) => {
      text ??= write()
      return reply.header('content-type', contentType).header('cache-control', 'no-cache').send(text)
    }
  })
}
