import Fastify from 'fastify'
import { AccessRules } from '../../../src/gateway/access.js'
import { apiDocs } from '../../../src/gateway/api-docs/api-docs.js'
import { type LocalHandler, mountRoutes } from '../../../src/gateway/routes/mount-routes.js'
import type { RouteTable } from '../../../src/gateway/routes/tables/declare.js'
import { memberAt } from '../../helper/member-at.js'

// The parts of OpenAPI 3.1 that the tests read.

export interface OpenApiDocument {
  readonly info: { readonly version: string }
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: Readonly<Record<string, Partial<Record<(typeof METHODS)[number], Operation>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>
    readonly examples: Readonly<Record<string, { readonly value: unknown }>>
  }
}

export interface Operation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly summary: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Readonly<Record<string, MediaType>> }
  readonly responses: Readonly<Record<string, Response>>
  readonly security: readonly object[]
}

interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query'
  readonly required: boolean
  readonly schema: JsonSchema
}

export interface Response {
  readonly description: string
  readonly headers?: Readonly<Record<string, object>>
  readonly content?: Readonly<Record<string, MediaType>>
}

interface MediaType {
  readonly schema?: JsonSchema
  readonly examples?: Readonly<Record<string, object>>
}

export interface JsonSchema {
  readonly $ref?: string
  readonly type?: string
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly examples?: readonly unknown[]
}

const METHODS = ['get', 'head', 'post', 'put', 'patch', 'delete'] as const

/** The document of a server that has these routes. */
export const documentOf = async (tables: readonly RouteTable[], version = '1.2.3'): Promise<OpenApiDocument> => {
  const app = Fastify()
  const noResponse: LocalHandler = () => undefined
  const declared = { isBuiltIn: true, tables, description: null, warnings: [] }
  await apiDocs(app, { declared, access: new AccessRules(), upstreams: [], unknownPaths: 'forward', version })
  mountRoutes(app, tables, {
    access: new AccessRules(),
    forward: noResponse,
    local: new Map(tables.flatMap(({ rows }) => rows.map(({ method, path }) => [`${method} ${path}`, noResponse]))),
    uploadBytes: 1,
    unknownPaths: 'forward'
  })
  await app.ready()
  // The library's type is a union of all versions; another test validates the document.
  const document = app.swagger() as unknown as OpenApiDocument
  await app.close()
  return document
}

/** An operation with its method and path. */
export interface PlacedOperation {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

export const operationsOf = ({ paths }: OpenApiDocument): readonly PlacedOperation[] =>
  Object.entries(paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = item[method]
      return operation === undefined ? [] : [{ method, path, operation }]
    })
  )

/** The value that a reference of the document points to. */
export const resolve = (document: OpenApiDocument, $ref: string): unknown =>
  memberAt(document, $ref.split('/').slice(1))
