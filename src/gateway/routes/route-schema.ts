// Adds `operationId`, `summary`, `security` and others to Fastify's route schema.
import type {} from '@fastify/swagger'
import { type TSchema, Type } from '@sinclair/typebox'
import type { FastifySchema } from 'fastify'
import type { AccessRules } from '../access.js'
import { errorResponses, needsCsrfPair, needsSession, type ResponseSchema } from './error-responses.js'
import type { LocalResponse, LocalRoute, RouteDeclaration } from './tables/declare.js'

interface RouteSchemaOptions {
  readonly domain: string
  readonly operationId: string
  readonly access: AccessRules
}

/**
 * The Fastify schema of a declared route. Fastify validates `params` and `body`; the rest is documentation, which
 * `../api-docs/api-docs.ts` serves.
 */
export const routeSchema = (
  row: RouteDeclaration,
  { domain, operationId, access }: RouteSchemaOptions
): FastifySchema => ({
  operationId,
  summary: row.summary,
  ...(row.kind === 'local' && { description: row.documentation.description }),
  tags: [domain],
  ...paramsOf(row),
  ...(row.body !== null && { body: row.body }),
  response: {
    ...(row.kind === 'local' ? localResponses(row) : forwardedResponses(row)),
    ...errorResponses(row, access)
  },
  security: securityOf(row, access)
})

const paramsOf = ({ path }: RouteDeclaration): { params?: TSchema } => {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name)
  if (names.length === 0) return {}
  const parameter = Type.String({ minLength: 1, description: 'Forwarded to the backend unchanged.' })
  return { params: Type.Object(Object.fromEntries(names.map((name) => [name, parameter]))) }
}

/** A schema with a name by reference: the document contains it once. */
export const byReference = (schema: TSchema): object => (schema.$id === undefined ? schema : { $ref: `${schema.$id}#` })

const json = (schema: object): Pick<ResponseSchema, 'content'> => ({ content: { 'application/json': { schema } } })

const FILE: ResponseSchema = {
  description: 'A file, streamed from the backend.',
  content: { '*/*': { schema: {} } }
}

const BACKEND_RESPONSE: ResponseSchema = { description: 'The response of the backend, unchanged.', ...json({}) }

const NO_CONTENT: ResponseSchema = { description: 'The backend responded without a body.', type: 'null' }

const BACKEND_ERROR: ResponseSchema = { description: 'An error response of the backend, unchanged.', type: 'null' }

const forwardedResponses = ({ kind }: RouteDeclaration): Readonly<Record<string, ResponseSchema>> => ({
  '2XX': kind === 'stream' ? FILE : BACKEND_RESPONSE,
  '204': NO_CONTENT,
  default: BACKEND_ERROR
})

const localResponses = ({ method, path, documentation }: LocalRoute): Readonly<Record<string, ResponseSchema>> => {
  const responses = Object.entries(documentation.responses)
  if (responses.length === 0) throw new Error(`no documented responses for ${method} ${path}`)
  return Object.fromEntries(responses.map(([status, response]) => [status, localResponse(response)]))
}

const localResponse = ({ description, body, cookies }: LocalResponse): ResponseSchema => ({
  description,
  ...(cookies && {
    headers: { 'Set-Cookie': { type: 'string', description: `Sets or clears: ${cookies.join(', ')}.` } }
  }),
  ...(body ? json(byReference(body)) : { type: 'null' })
})

type SecurityRequirement = Partial<Record<'session' | 'csrf', readonly string[]>>

/** Alternatives: one of them must be met. An empty one requires nothing. */
export const securityOf = (row: RouteDeclaration, access: AccessRules): readonly SecurityRequirement[] => {
  const session = needsSession(row, access)
  const csrf = needsCsrfPair(row)
  if (session || csrf) return [{ ...(session && { session: [] }), ...(csrf && { csrf: [] }) }]
  // Reads are forwarded without a session, and the backend decides.
  return row.kind === 'local' ? [] : [{ session: [] }, {}]
}
