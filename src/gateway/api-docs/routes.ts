import type { FastifyInstance } from 'fastify'
import type { OpenApiDocument } from './document.js'
import { apiPage } from './page.js'

/** Where they are. Another spelling of one must not end up at the backend. */
export const API_DOCS_PATHS = ['/api/docs', '/api/docs/json'] as const

/** Serves the description of the API, for people and for programs. */
export const apiDocs = (app: FastifyInstance, document: OpenApiDocument): void => {
  const [pagePath, jsonPath] = API_DOCS_PATHS
  serve(app, pagePath, 'text/html; charset=utf-8', () => apiPage(document, jsonPath))
  serve(app, jsonPath, 'application/json; charset=utf-8', () => JSON.stringify(document))
}

const serve = (app: FastifyInstance, url: string, contentType: string, write: () => string): void => {
  // Written once, for the first who asks: most gateways are never asked.
  let text: string | null = null
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
