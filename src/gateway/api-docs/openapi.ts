import type { GatewayError } from '../errors.js'
import type { RouteTable } from '../routes/declare.js'
import { Components } from './components.js'
import type { ApiKey, OpenApiDocument, Operation, SecurityScheme } from './document.js'
import { errorExamples, errorsOfAnyRequest } from './error-responses.js'
import { describeOperation } from './operation.js'
import { operationIds } from './operation-ids.js'

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
    info: { title: 'Gatehouse', version, description: introduction(errorsOfAnyRequest) },
    servers: [{ url: '/' }],
    tags: tables.map(({ domain, about }) => ({ name: domain, description: about })),
    paths,
    components: {
      schemas: components.schemas(),
      responses: components.responses(),
      examples: errorExamples(),
      securitySchemes
    }
  }
}

const introduction = (errors: readonly GatewayError[]): string =>
  `
The gateway checks each request and forwards it to the same path of the backend. The response of the backend is returned
unchanged. Requests to all other paths under \`/api/\` are forwarded without a schema.

Mutations require a session and a CSRF token. The token comes from \`/api/auth/csrf-token\` and is sent in the header
\`X-CSRF-Token\`. Reads are forwarded, and the backend decides; only the audit log requires a session in the gateway.
Sessions, CSRF tokens and the login limit are enforced in production only.

An error response of the gateway has the header \`X-Gateway-Error\` and the body \`ErrorBody\`; an error response of the
backend has neither. A mutation with a method that is not listed for a path is rejected with \`METHOD_NOT_ALLOWED\` (405),
a different spelling of a listed path with \`AMBIGUOUS_PATH\` (400). Any request can also fail with these errors:

${errors.map(({ statusCode, code, message }) => `- ${statusCode} \`${code}\`: ${message}`).join('\n')}
`.trim()

const securitySchemes: Readonly<Record<SecurityScheme, ApiKey>> = {
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
}
