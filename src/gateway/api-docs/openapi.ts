import type { RouteTable } from '../routes/declare.js'
import { Components } from './components.js'
import type { OpenApiDocument, Operation } from './document.js'
import { describeOperation } from './operation.js'
import { operationIds } from './operation-ids.js'
import { refusalExamples, refusalsOfAnyRequest } from './operation-refusals.js'
import { about, securitySchemes } from './words.js'

/** Describes the routes of these tables in OpenAPI 3.1. */
export const openApiDocument = (
  tables: readonly RouteTable[],
  { version }: { readonly version: string }
): OpenApiDocument => {
  const ids = operationIds(tables.flatMap(({ rows }) => rows))
  const components = new Components()
  const paths: Record<string, Record<string, Operation>> = {}

  for (const { domain, rows } of tables) {
    for (const row of rows) {
      const path = row.path.replace(/:(\w+)/g, '{$1}')
      paths[path] ??= {}
      paths[path][row.method.toLowerCase()] = {
        operationId: ids.get(row) ?? '',
        tags: [domain],
        ...describeOperation(row, components)
      }
    }
  }

  return {
    openapi: '3.1.0',
    info: { title: 'Gatehouse', version, description: about(refusalsOfAnyRequest) },
    servers: [{ url: '/' }],
    tags: tables.map(({ domain, about }) => ({ name: domain, description: about })),
    paths,
    components: {
      schemas: components.schemas(),
      responses: components.responses(),
      examples: refusalExamples(),
      securitySchemes
    }
  }
}
