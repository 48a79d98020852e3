import { PagingSchema } from '../../../schemas/paging.js'
import type { RouteDeclaration } from '../routes/declare.js'
import type { Components } from './components.js'
import type { Operation, Parameter, RequestBody, SecurityRequirement } from './document.js'
import { needsCsrfPair, needsSession, type RefusedRoute, refusalResponses } from './operation-refusals.js'
import { type OwnAnswer, ownAnswers } from './own-answers.js'
import { BACKEND_ERROR } from './words.js'

/** What is said of one operation, but for its name and place. */
export const describeOperation = (
  row: RouteDeclaration,
  components: Components
): Omit<Operation, 'operationId' | 'tags'> => {
  const own = row.kind === 'local' ? ownAnswers.get(`${row.method} ${row.path}`) : undefined
  const route = { ...row, needsBackend: own?.needsBackend ?? true }
  const parameters = [...pathParameters(row), ...queryParameters(route, components)]
  const requestBody = requestBodyOf(row, components)
  return {
    summary: row.summary,
    ...(own && { description: own.description }),
    ...(parameters.length > 0 && { parameters }),
    ...(requestBody && { requestBody }),
    responses: {
      ...(own === undefined ? forwardedAnswers(row, components) : answersOf(own, components)),
      ...refusalResponses(route, components)
    },
    security: securityOf(route)
  }
}

const pathParameters = ({ path }: RouteDeclaration): readonly Parameter[] =>
  [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    description: 'Goes to the backend as it is.',
    schema: { type: 'string', minLength: 1 }
  }))

/** Which of them a list takes is the backend's to say: the gateway looks at no query. */
const queryParameters = (route: RefusedRoute, components: Components): readonly Parameter[] => {
  if (route.method !== 'GET' || !route.needsBackend || /\/:\w+$/.test(route.path)) return []
  return [
    {
      name: 'query',
      in: 'query',
      required: false,
      description: 'Everything in the query goes to the backend as it is. Lists commonly take these.',
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
  description:
    'A form that streams through. The gateway does not look inside: which parts there are, the backend says.',
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

const forwardedAnswers = ({ kind }: RouteDeclaration, components: Components): Operation['responses'] => ({
  '2XX':
    kind === 'stream'
      ? components.useResponse('File', {
          description: 'A file, streamed as the backend sends it.',
          content: { '*/*': {} }
        })
      : components.useResponse('Answer', {
          description: "The backend's answer, passed through as it is.",
          content: { 'application/json': {} }
        }),
  '204': components.useResponse('Nothing', { description: 'The backend had nothing to say.' }),
  default: components.useResponse('BackendError', { description: BACKEND_ERROR })
})

const answersOf = ({ answers }: OwnAnswer, components: Components): Operation['responses'] =>
  Object.fromEntries(
    Object.entries(answers).map(([status, { description, body, cookies }]) => [
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

const securityOf = (route: RefusedRoute): readonly SecurityRequirement[] => {
  const session = needsSession(route)
  const csrf = needsCsrfPair(route)
  if (session || csrf) return [{ ...(session && { session: [] }), ...(csrf && { csrf: [] }) }]
  // A read passes without a session; whether that is enough, the backend decides.
  return route.method === 'GET' && route.needsBackend ? [{ session: [] }, {}] : []
}
