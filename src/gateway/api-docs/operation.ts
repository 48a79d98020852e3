import { PagingSchema } from '../../../schemas/paging.js'
import type { RouteDeclaration } from '../routes/declare.js'
import type { Components } from './components.js'
import type { Operation, Parameter, RequestBody, SecurityRequirement } from './document.js'
import { type DocumentedRoute, errorResponses, needsCsrfPair, needsSession } from './error-responses.js'
import { BACKEND_ERROR, type LocalOperation, localOperations } from './local-responses.js'

/** Describes one operation, without its id and tags. */
export const describeOperation = (
  row: RouteDeclaration,
  components: Components
): Omit<Operation, 'operationId' | 'tags'> => {
  const local = row.kind === 'local' ? localOperations.get(`${row.method} ${row.path}`) : undefined
  const route = { ...row, needsBackend: local?.needsBackend ?? true }
  const parameters = [...pathParameters(row), ...queryParameters(route, components)]
  const requestBody = requestBodyOf(row, components)
  return {
    summary: row.summary,
    ...(local && { description: local.description }),
    ...(parameters.length > 0 && { parameters }),
    ...(requestBody && { requestBody }),
    responses: {
      ...(local === undefined ? forwardedResponses(row, components) : localResponses(local, components)),
      ...errorResponses(route, components)
    },
    security: securityOf(route)
  }
}

const pathParameters = ({ path }: RouteDeclaration): readonly Parameter[] =>
  [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    description: 'Forwarded to the backend unchanged.',
    schema: { type: 'string', minLength: 1 }
  }))

/** The gateway does not read the query; the backend decides which parameters a list accepts. */
const queryParameters = (route: DocumentedRoute, components: Components): readonly Parameter[] => {
  if (route.method !== 'GET' || !route.needsBackend || /\/:\w+$/.test(route.path)) return []
  return [
    {
      name: 'query',
      in: 'query',
      required: false,
      description: 'The whole query is forwarded to the backend unchanged. Most lists accept these parameters.',
      style: 'form',
      explode: true,
      schema: components.useSchema(PagingSchema)
    }
  ]
}

const requestBodyOf = ({ kind, body, bodyOptional }: RouteDeclaration, components: Components): RequestBody | null => {
  if (kind === 'upload') return UPLOAD
  if (body === null) return null
  return { required: !bodyOptional, content: { 'application/json': { schema: components.useSchema(body) } } }
}

const UPLOAD: RequestBody = {
  required: true,
  description: 'A form that is streamed to the backend. The backend defines its fields.',
  content: {
    'multipart/form-data': {
      schema: {
        type: 'object',
        properties: {
          file: { type: 'string', contentMediaType: 'application/octet-stream', description: 'The file.' }
        },
        additionalProperties: true
      }
    }
  }
}

const forwardedResponses = ({ kind }: RouteDeclaration, components: Components): Operation['responses'] => ({
  '2XX':
    kind === 'stream'
      ? components.useResponse('File', {
          description: 'A file, streamed from the backend.',
          content: { '*/*': {} }
        })
      : components.useResponse('Answer', {
          description: 'The response of the backend, unchanged.',
          content: { 'application/json': {} }
        }),
  '204': components.useResponse('Nothing', { description: 'The backend responded without a body.' }),
  default: components.useResponse('BackendError', { description: BACKEND_ERROR })
})

const localResponses = ({ responses }: LocalOperation, components: Components): Operation['responses'] =>
  Object.fromEntries(
    Object.entries(responses).map(([status, { description, body, cookies }]) => [
      status,
      {
        description,
        ...(cookies && { headers: setCookie(cookies) }),
        ...(body && { content: { 'application/json': { schema: components.useSchema(body) } } })
      }
    ])
  )

const setCookie = (names: readonly string[]) => ({
  'Set-Cookie': { description: `Sets or clears: ${names.join(', ')}.`, schema: { type: 'string' } }
})

const securityOf = (route: DocumentedRoute): readonly SecurityRequirement[] => {
  const session = needsSession(route)
  const csrf = needsCsrfPair(route)
  if (session || csrf) return [{ ...(session && { session: [] }), ...(csrf && { csrf: [] }) }]
  // Reads are forwarded without a session, and the backend decides.
  return route.method === 'GET' && route.needsBackend ? [{ session: [] }, {}] : []
}
