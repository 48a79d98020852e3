import { createRequire } from 'node:module'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import t from 'tap'
import { ErrorBodySchema } from '../../../schemas/error-body.js'
import { PagingSchema } from '../../../schemas/paging.js'
import { schemas } from '../../../schemas/registry.js'
import { routeTables } from '../../../src/gateway/routes/index.js'
import { get, local, post, type RouteDeclaration, type RouteTable } from '../../../src/gateway/routes/tables/declare.js'
import { isObject } from '../../../src/shared/is-object.js'
import { documentOf, operationsOf, type PlacedOperation, type Response, resolve } from './read-document.js'

const rows = routeTables.flatMap((table) => table.rows)
const document = await documentOf(routeTables)
const operations = operationsOf(document)

const documentOfRows = (...declarations: RouteDeclaration[]) =>
  documentOf([{ domain: 'things', about: 'Things', rows: declarations } satisfies RouteTable])

const nameOf = ({ method, path }: Pick<PlacedOperation, 'method' | 'path'>): string => `${method.toUpperCase()} ${path}`
const templateOf = (path: string): string => path.replace(/:(\w+)/g, '{$1}')

const rowOf = (operation: PlacedOperation): RouteDeclaration => {
  const row = rows.find(({ method, path }) => nameOf({ method, path: templateOf(path) }) === nameOf(operation))
  if (row === undefined) throw new Error(`${nameOf(operation)} is not declared`)
  return row
}

const responseOf = ({ operation }: PlacedOperation, status: string): Response | undefined => operation.responses[status]

const codesOf = (placed: PlacedOperation): readonly string[] =>
  Object.keys(placed.operation.responses).flatMap((status) =>
    Object.keys(responseOf(placed, status)?.content?.['application/json']?.examples ?? {})
  )

/** One value per operation, to compare a whole table at once. */
const each = (placed: readonly PlacedOperation[], value: (placed: PlacedOperation) => unknown) =>
  Object.fromEntries(placed.map((operation) => [nameOf(operation), value(operation)]))

/** All objects in a document. */
function* objectsWithin(value: unknown): Generator<Readonly<Record<string, unknown>>> {
  if (typeof value !== 'object' || value === null) return
  if (isObject(value)) yield value
  for (const part of Object.values(value)) yield* objectsWithin(part)
}

interface JsonSchemaValidator {
  addSchema(schema: object, key: string): void
  compile(schema: object): (value: unknown) => boolean
  validateSchema(schema: object): boolean
}

/** The OpenAPI validator does not check schemas, so Ajv does. */
const jsonSchemaValidator = (): JsonSchemaValidator => {
  const { Ajv2020 } = createRequire(import.meta.resolve('@seriousme/openapi-schema-validator'))('ajv/dist/2020.js')
  return new Ajv2020({ strictSchema: true, strictRequired: true, allErrors: true, keywords: ['x-data'] })
}

t.test('the OpenAPI document', async (t) => {
  t.test('the document is valid OpenAPI 3.1', async (t) => {
    const validator = new Validator()
    t.match(await validator.validate(JSON.parse(JSON.stringify(document))), { valid: true })
    t.equal(validator.version, '3.1')
  })

  t.test('the document has the given version', async (t) => {
    t.equal(document.info.version, '1.2.3')
  })

  t.test('the document contains JSON values only', async (t) => {
    t.same(JSON.parse(JSON.stringify(document)), document)
  })

  t.test('the document describes all declared routes and no others', async (t) => {
    const declared = rows.map(({ method, path }) => nameOf({ method, path: templateOf(path) }))
    t.same(operations.map(nameOf).toSorted(), declared.toSorted())
  })

  t.test('every operation has a summary and the tag of its domain', async (t) => {
    const domainOf = (row: RouteDeclaration) => routeTables.find((table) => table.rows.includes(row))?.domain
    t.same(
      each(operations, ({ operation: { summary, tags } }) => ({ summary, tags })),
      each(operations, (placed) => ({ summary: rowOf(placed).summary, tags: [domainOf(rowOf(placed))] }))
    )
    t.same(
      document.tags,
      routeTables.map(({ domain, about }) => ({ name: domain, description: about }))
    )
  })

  t.test('the document is deterministic', async (t) => {
    t.same(await documentOf(routeTables), document)
  })
})

t.test('references', async (t) => {
  t.test('every reference can be resolved', async (t) => {
    const references = new Set(
      [...objectsWithin(document)].flatMap(({ $ref }) => (typeof $ref === 'string' ? $ref : []))
    )
    t.ok(references.size > 50)
    for (const $ref of references) t.type(resolve(document, $ref), 'object', $ref)
  })

  t.test('no schema of the document has an $id', async (t) => {
    t.notOk([...objectsWithin(document)].some((value) => '$id' in value))
  })
})

t.test('schemas', async (t) => {
  t.test('all schemas are valid JSON Schema 2020-12', async (t) => {
    const validator = jsonSchemaValidator()
    t.notOk(validator.validateSchema({ type: 'nonsense' }), 'the validator looks')
    validator.addSchema({ 'x-data': document }, 'file:document')
    for (const [name, schema] of Object.entries(document.components.schemas)) {
      t.ok(validator.validateSchema(schema), name)
      const check = validator.compile({ $ref: `file:document#/x-data/components/schemas/${name}` })
      for (const example of schema.examples ?? []) t.ok(check(example), `an example of ${name}`)
    }
  })

  t.test('the schemas of the document are those of the registry', async (t) => {
    const originals: Readonly<Record<string, object>> = schemas
    for (const [name, copy] of Object.entries(document.components.schemas)) {
      t.same({ $id: name, ...copy }, JSON.parse(JSON.stringify(originals[name])), name)
    }
  })

  t.test('a body schema without a name is inlined', async (t) => {
    const { paths, components } = await documentOfRows(post('/api/things', 'Make', Type.Object({ a: Type.Number() })))
    t.same(paths['/api/things']?.post?.requestBody?.content, {
      'application/json': { schema: { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] } }
    })
    t.notOk('undefined' in components.schemas)
  })
})

t.test('operation ids', async (t) => {
  t.test('operation ids are unique', async (t) => {
    const ids = operations.map(({ operation }) => operation.operationId)
    t.same(ids.toSorted(), [...new Set(ids)].toSorted())
    t.ok(ids.every((id) => /^[a-z][A-Za-z]*(?:\.[a-z][A-Za-z]*)+$/.test(id)))
  })

  const EXPECTED: Readonly<Record<string, string>> = {
    'GET /api/zones': 'zones.list',
    'POST /api/zones': 'zones.create',
    'GET /api/zones/{id}': 'zones.read',
    'PUT /api/zones/{id}': 'zones.update',
    'DELETE /api/zones/{id}': 'zones.delete',
    'GET /api/zones/emergency': 'zones.emergency',
    'PATCH /api/transmitters/{id}': 'transmitters.patch',
    'POST /api/auth/backend-login': 'auth.backendLogin',
    'POST /api/users/{id}/reset-password': 'users.resetPassword',
    'POST /api/personnel/{id}/photo': 'personnel.photo.upload',
    'DELETE /api/personnel/{id}/photo': 'personnel.photo.delete',
    'GET /api/personnel/export/csv': 'personnel.export.csv',
    'PUT /api/emergency/contacts/{contactId}': 'emergency.contacts.update',
    'GET /api/dashboard': 'dashboard.read',
    'GET /api/battery/thresholds': 'battery.thresholds.read',
    'PUT /api/battery/thresholds': 'battery.thresholds.update',
    'DELETE /api/mgmt/zone-types': 'mgmt.zoneTypes.deleteMany',
    'POST /api/mgmt/beacons/{id}': 'mgmt.beacons.act',
    'PUT /api/mgmt/settings/ble': 'mgmt.settings.ble.update',
    'POST /api/negotiate': 'negotiate.post'
  }
  for (const [name, id] of Object.entries(EXPECTED)) {
    t.test(`the operation id of ${name} is ${id}`, async (t) => {
      t.equal(operations.find((placed) => nameOf(placed) === name)?.operation.operationId, id)
    })
  }
})

t.test('parameters', async (t) => {
  t.test('every path parameter is declared with a schema', async (t) => {
    const inPath = ({ operation: { parameters = [] } }: PlacedOperation) =>
      parameters.filter((parameter) => parameter.in === 'path')
    t.same(
      each(operations, (placed) => inPath(placed).map(({ name }) => name)),
      each(operations, (placed) => [...rowOf(placed).path.matchAll(/:(\w+)/g)].map(([, name]) => name))
    )
    t.ok(operations.flatMap(inPath).every(({ required, schema }) => required && schema.type === 'string'))
  })

  t.test('lists document the paging parameters', async (t) => {
    const query = (path: string) =>
      (document.paths[path]?.get?.parameters ?? [])
        .filter((parameter) => parameter.in === 'query' && !parameter.required)
        .map(({ name }) => name)
    t.same(query('/api/zones'), Object.keys(PagingSchema.properties))
    t.same(query('/api/zones/{id}'), [])
    t.same(query('/api/health'), [])
  })
})

t.test('a write request', async (t) => {
  const writes = operations.filter(({ method }) => method !== 'get')

  t.test('a write request references the schema of its body and whether it is required', async (t) => {
    const withJson = writes.filter((write) => rowOf(write).kind !== 'upload')
    const expected = ({ body, bodyOptional }: RouteDeclaration) => ({
      required: !bodyOptional,
      content: { 'application/json': { schema: { $ref: `#/components/schemas/${body?.$id}` } } }
    })
    t.same(
      each(withJson, ({ operation }) => operation.requestBody),
      each(withJson, (placed) => expected(rowOf(placed)))
    )
  })

  t.test('an upload accepts a form with a file', async (t) => {
    const uploads = writes.filter((write) => rowOf(write).kind === 'upload')
    t.equal(uploads.length, 3)
    for (const { operation } of uploads) {
      t.match(operation.requestBody, {
        required: true,
        content: {
          'multipart/form-data': { schema: { properties: { file: { contentMediaType: 'application/octet-stream' } } } }
        }
      })
    }
  })

  const SECURITY: Readonly<Record<string, readonly object[]>> = {
    'POST /api/auth/login': [],
    'POST /api/auth/backend-login': [],
    'POST /api/auth/logout': [{ csrf: [] }]
  }

  t.test('a write request requires a session and a CSRF token, except sign-in', async (t) => {
    t.same(
      each(writes, ({ operation }) => operation.security),
      each(writes, (placed) => SECURITY[nameOf(placed)] ?? [{ session: [], csrf: [] }])
    )
  })

  t.test('a write request lists its error responses', async (t) => {
    const ordinary = writes.filter((write) => SECURITY[nameOf(write)] === undefined)
    const expected = ({ path, kind }: RouteDeclaration) => [
      ...(path.includes(':') ? ['AMBIGUOUS_PATH'] : []),
      ...(kind === 'upload' ? [] : ['MALFORMED_BODY', 'VALIDATION_FAILED']),
      ...['UNAUTHENTICATED', 'TOKEN_EXPIRED', 'CSRF_MISMATCH', 'ORIGIN_REFUSED'],
      ...['BODY_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE', 'BACKEND_UNREACHABLE', 'OVERLOADED', 'BACKEND_TIMEOUT']
    ]
    t.same(
      each(ordinary, (placed) => codesOf(placed).toSorted()),
      each(ordinary, (placed) => expected(rowOf(placed)).toSorted())
    )
  })
})

t.test('a read', async (t) => {
  const reads = operations.filter(({ method }) => method === 'get')

  t.test('a read has no body', async (t) => {
    t.ok(reads.every(({ operation }) => operation.requestBody === undefined))
  })

  t.test('only reads of the audit log require a session', async (t) => {
    const expected = ({ path, kind }: RouteDeclaration) => {
      if (kind === 'local') return []
      return path.startsWith('/api/audit/') ? [{ session: [] }] : [{ session: [] }, {}]
    }
    t.same(
      each(reads, ({ operation }) => operation.security),
      each(reads, (placed) => expected(rowOf(placed)))
    )
  })

  t.test('a read for admins documents FORBIDDEN', async (t) => {
    const { paths } = await documentOfRows(get('/api/admin/things', 'Read'))
    t.match(paths['/api/admin/things']?.get, {
      security: [{ session: [] }],
      responses: { 403: { content: { 'application/json': { examples: { FORBIDDEN: {} } } } } }
    })
  })
})

t.test('responses', async (t) => {
  t.test('a forwarded response has no schema', async (t) => {
    const forwarded = operations.filter((operation) => rowOf(operation).kind === 'json')
    const contents = (placed: PlacedOperation) =>
      ['2XX', '204', 'default'].map((status) => responseOf(placed, status)?.content ?? null)
    t.same(
      each(forwarded, contents),
      each(forwarded, () => [{ 'application/json': { schema: {} } }, null, null])
    )
    t.ok(forwarded.every((placed) => responseOf(placed, '204') && responseOf(placed, 'default')))
  })

  t.test('a download has any content type', async (t) => {
    const downloads = operations.filter((operation) => rowOf(operation).kind === 'stream')
    t.equal(downloads.length, 3)
    for (const placed of downloads) t.same(responseOf(placed, '2XX')?.content, { '*/*': { schema: {} } })
  })

  t.test('the gateway does not start with a local route whose responses are not documented', async (t) => {
    const route = local(get('/api/things', 'List'), { description: '', responses: {}, needsBackend: false })
    await t.rejects(documentOfRows(route), { message: 'no documented responses for GET /api/things' })
  })

  t.test('all error responses have the same schema', async (t) => {
    for (const { description, content } of operations.flatMap(({ operation }) => Object.values(operation.responses))) {
      const { schema, examples = {} } = content?.['application/json'] ?? {}
      const codes = Object.keys(examples)
      if (codes.length > 0) t.same(schema, { $ref: '#/components/schemas/ErrorBody' })
      for (const code of codes) t.match(description, `\`${code}\``)
    }
    for (const [code, { value }] of Object.entries(document.components.examples)) {
      t.ok(Value.Check(ErrorBodySchema, value))
      t.match(value, { error: { code } })
    }
  })

  t.test('RATE_LIMITED documents the Retry-After header', async (t) => {
    const login = operations.find((placed) => nameOf(placed) === 'POST /api/auth/login')
    t.same(Object.keys((login && responseOf(login, '429')?.headers) ?? {}), [
      'X-RateLimit-Limit',
      'X-RateLimit-Remaining',
      'X-RateLimit-Reset',
      'Retry-After'
    ])
  })
})
