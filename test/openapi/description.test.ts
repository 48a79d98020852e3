import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dump } from 'js-yaml'
import t, { type Test } from 'tap'
import { type Description, type Operation, readDescription } from '../../src/openapi/description.js'
import { parameterErrors } from '../../src/openapi/parameters.js'
import { SettingsError } from '../../src/shared/env.js'

type Files = Readonly<Record<string, unknown>>

const isOwnPath = (path: string): boolean => path.startsWith('/api/auth/')

const read = (t: Test, files: Files, main = 'openapi.json'): Description => {
  const folder = t.testdir({})
  for (const [name, content] of Object.entries(files)) {
    const text =
      typeof content === 'string' ? content : name.endsWith('.json') ? JSON.stringify(content) : dump(content)
    writeFileSync(join(folder, name), text)
  }
  return readDescription(join(folder, main), isOwnPath)
}

const document = (rest: object, openapi = '3.1.0') => ({ openapi, info: { title: 'test', version: '1' }, ...rest })

const errorsOf = (t: Test, files: Files, main?: string): readonly string[] => {
  try {
    read(t, files, main)
  } catch (error) {
    if (error instanceof SettingsError) return error.errors
    throw error
  }
  return []
}

const json = (schema: unknown, rest: object = {}) => ({ content: { 'application/json': { schema } }, ...rest })

/** The errors of a JSON body, for a description with one operation that takes it. */
const bodyErrors = (t: Test, schema: unknown, body: unknown, version = '3.1.0', components: object = {}) => {
  const files = {
    'openapi.json': document({ paths: { '/x': { post: { requestBody: json(schema) } } }, components }, version)
  }
  return jsonErrors(only(read(t, files)), body)
}

const jsonErrors = ({ body }: Operation, value: unknown, type = 'application/json') => body?.json.get(type)?.(value)

const operationsOf = ({ paths }: Description): readonly Operation[] => paths.flatMap(({ operations }) => operations)

const only = (description: Description): Operation => {
  const [operation] = operationsOf(description)
  if (operation === undefined) throw new Error('the description has no operation')
  return operation
}

t.test('paths that do not begin with /api are served below it, after the prefix of the first server', async (t) => {
  const served = (servers: unknown, path: string): string =>
    only(read(t, { 'openapi.json': document({ servers, paths: { [path]: { get: {} } } }) })).path

  t.equal(served(undefined, '/floors'), '/api/floors')
  t.equal(served(undefined, '/api/floors'), '/api/floors')
  t.equal(served([{ url: 'https://example.com/v1/' }], '/floors'), '/api/v1/floors')
  t.equal(served([{ url: '/api' }], '/floors'), '/api/floors')
  t.equal(
    served([{ url: 'https://{host}/{base}', variables: { base: { default: 'v2' } } }], '/floors'),
    '/api/v2/floors'
  )
  t.equal(served(undefined, '/apiary'), '/api/apiary')
})

t.test('path templates become routes, whatever the names of their parameters', async (t) => {
  const route = (path: string): string =>
    only(read(t, { 'openapi.json': document({ paths: { [path]: { get: {} } } }) })).path

  t.equal(route('/floors/{floor-id}/zones/{zone_id}'), '/api/floors/:floor_id/zones/:zone_id')
  t.equal(route('/files/{name}.json'), '/api/files/:name(^[^/]+).json')
  t.equal(route('/jobs/{id}:cancel'), '/api/jobs/:id(^[^/]+)::cancel')
})

t.test('two operations for the same method and path are an error', async (t) => {
  const paths = { '/floors/{id}': { get: {} }, '/floors/{name}': { get: {}, post: {} } }

  t.same(errorsOf(t, { 'openapi.json': document({ paths }) }), [
    'openapi.json#/paths/~1floors~1{name}/get: the same method and path as openapi.json#/paths/~1floors~1{id}/get'
  ])
})

t.test('operations on paths of the gateway are ignored with a warning', async (t) => {
  const description = read(t, {
    'openapi.json': document({ paths: { '/api/auth/login': { post: {} }, '/x': { get: {} } } })
  })

  t.same(
    description.paths.map(({ path }) => path),
    ['/api/x']
  )
  t.same(description.warnings, [
    {
      location: 'openapi.json#/paths/~1api~1auth~1login/post',
      message: 'operation ignored, the gateway serves this path itself'
    }
  ])
})

t.test('the access level comes from the operation, then from its path, then from an empty security list', async (t) => {
  const paths = {
    '/a': { 'x-gatehouse-access': 'admin', get: { 'x-gatehouse-access': 'user' }, post: {}, put: { security: [] } },
    '/b': { get: { security: [] }, post: { security: [{ key: [] }] }, put: {} }
  }
  const operations = operationsOf(read(t, { 'openapi.json': document({ paths }) }))

  t.same(
    operations.map(({ method, path, access }) => [method, path, access]),
    [
      ['GET', '/api/a', 'user'],
      ['POST', '/api/a', 'admin'],
      ['PUT', '/api/a', 'admin'],
      ['GET', '/api/b', 'public'],
      ['POST', '/api/b', null],
      ['PUT', '/api/b', null]
    ]
  )
  t.same(errorsOf(t, { 'openapi.json': document({ paths: { '/a': { get: { 'x-gatehouse-access': 'root' } } } }) }), [
    'openapi.json#/paths/~1a/get/x-gatehouse-access: must be one of public, user, admin'
  ])
})

t.test('a document that cannot be read or parsed is reported with its location', async (t) => {
  t.match(errorsOf(t, {}, 'missing.yaml'), [/^missing\.yaml: cannot be read \(ENOENT\)$/])
  t.match(errorsOf(t, { 'openapi.json': '{"openapi": ' }), [/^openapi\.json: /])
  t.match(errorsOf(t, { 'openapi.yaml': 'openapi: 3.1.0\npaths: [' }, 'openapi.yaml'), [/^openapi\.yaml:\d+:\d+: /])
  t.match(errorsOf(t, { 'openapi.json': { swagger: '2.0' } }), [/there is no "openapi", supported are 3\.0 and 3\.1/])
  t.match(errorsOf(t, { 'openapi.json': document({}, '4.0.0') }), [/"openapi" is 4\.0\.0/])
})

t.test('all errors of a document are reported at once', async (t) => {
  const paths = {
    '/a': { post: { requestBody: json({ $ref: '#/components/schemas/Missing' }) } },
    '/b': { post: { requestBody: json({ type: 'strange' }) } },
    '/c': { post: { requestBody: json({ $ref: 'https://example.com/schema.json' }) } },
    '/d': { post: { requestBody: json({ type: 'string', pattern: '(' }) } },
    '/e{': { get: {} }
  }
  const errors = errorsOf(t, { 'openapi.json': document({ paths }) })

  t.match(errors.toSorted(), [
    /~1a\/post.*has no target/,
    /~1b\/post.*type must be/,
    /~1c\/post.*\$ref to a URL is not supported/,
    /~1d\/post.*Invalid regular expression/,
    /~1e\{: .*braces/
  ])
})

t.test('references to relative files are resolved, also from those files', async (t) => {
  const files = {
    'openapi.yaml': document({ paths: { '/floors': { $ref: './paths.yaml#/floors' } } }),
    'paths.yaml': { floors: { post: { requestBody: json({ $ref: 'models.json#/Floor' }) } } },
    'models.json': {
      Floor: { type: 'object', properties: { parent: { $ref: '#/Floor' }, level: { type: 'integer' } } }
    }
  }
  const operation = only(read(t, files, 'openapi.yaml'))

  t.same(jsonErrors(operation, { parent: { parent: { level: 3 } } }), [])
  t.same(jsonErrors(operation, { parent: { parent: { level: 'x' } } }), [
    { path: '/parent/parent/level', message: 'must be integer' }
  ])
})

t.test('a reference that leads to itself is an error', async (t) => {
  const components = {
    parameters: { a: { $ref: '#/components/parameters/b' }, b: { $ref: '#/components/parameters/a' } }
  }
  const paths = { '/x': { get: { parameters: [{ $ref: '#/components/parameters/a' }] } } }

  t.match(errorsOf(t, { 'openapi.json': document({ paths, components }) }), [/\$ref refers to itself/])
})

for (const [keyword, endless] of [
  ['allOf', { allOf: [{ $ref: '#/components/schemas/Endless' }] }],
  ['dependentSchemas', { dependentSchemas: { name: { $ref: '#/components/schemas/Endless' } } }]
] as const) {
  t.test(`a schema that refers to itself for the same value in ${keyword} is an error`, async (t) => {
    const paths = { '/x': { post: { requestBody: json({ $ref: '#/components/schemas/Endless' }) } } }

    t.same(errorsOf(t, { 'openapi.json': document({ paths, components: { schemas: { Endless: endless } } }) }), [
      'openapi.json#/components/schemas/Endless: the schema refers to itself for the same value'
    ])
  })
}

t.test('a schema without any allowed type is an error', async (t) => {
  const paths = { '/x': { post: { requestBody: json({ type: [] }) } } }

  t.match(errorsOf(t, { 'openapi.json': document({ paths }) }), [/\/schema\/type: type must be one of null, boolean/])
})

t.test('formats, patterns and additional properties are validated, unknown formats are ignored', async (t) => {
  const schema = {
    type: 'object',
    properties: {
      mail: { type: 'string', format: 'email' },
      code: { type: 'string', pattern: '^[A-Z]+$' },
      odd: { type: 'string', format: 'made-up' }
    },
    additionalProperties: false,
    required: ['mail']
  }
  t.same(bodyErrors(t, schema, { mail: 'a@example.com', code: 'AB', odd: 'x' }), [])
  t.match(bodyErrors(t, schema, { mail: 'no', code: 'ab', other: 1 }), [
    { path: '/other', message: 'is not a field of this' },
    { path: '/mail', message: /email/ },
    { path: '/code', message: /pattern/ }
  ])
  t.same(bodyErrors(t, schema, {}), [{ path: '/mail', message: 'is required' }])
})

t.test('nullable and boolean exclusive bounds of 3.0 are understood', async (t) => {
  const schema = {
    type: 'object',
    properties: {
      name: { type: 'string', nullable: true },
      kind: { type: 'string', enum: ['a'], nullable: true },
      level: { type: 'number', minimum: 0, exclusiveMinimum: true }
    }
  }
  t.same(bodyErrors(t, schema, { name: null, kind: null, level: 1 }, '3.0.3'), [])
  t.match(bodyErrors(t, schema, { name: 1, kind: 'b', level: 0 }, '3.0.3'), [
    { path: '/name' },
    { path: '/kind' },
    { path: '/level', message: 'must be > 0' }
  ])
})

t.test('a null type and keywords beside $ref of 3.1 are understood', async (t) => {
  const components = { schemas: { Name: { type: ['string', 'null'] } } }
  const schema = { type: 'object', properties: { name: { $ref: '#/components/schemas/Name', minLength: 2 } } }

  t.same(bodyErrors(t, schema, { name: null }, '3.1.0', components), [])
  t.match(bodyErrors(t, schema, { name: 'x' }, '3.1.0', components), [{ path: '/name' }])
  t.same(bodyErrors(t, schema, { name: 'x' }, '3.0.0', components), [], '3.0 ignores keywords beside $ref')
})

t.test('a discriminator selects the schema by its mapping, by a constant or by its name', async (t) => {
  const schemas = {
    Cat: { type: 'object', required: ['claws'], properties: { kind: { type: 'string' }, claws: { type: 'integer' } } },
    Dog: { type: 'object', required: ['bark'], properties: { kind: { const: 'dog' }, bark: { type: 'boolean' } } },
    Bird: { type: 'object', required: ['wings'], properties: { wings: { type: 'integer' } } }
  }
  const schema = {
    oneOf: ['Cat', 'Dog', 'Bird'].map((name) => ({ $ref: `#/components/schemas/${name}` })),
    discriminator: { propertyName: 'kind', mapping: { cat: '#/components/schemas/Cat', tiger: 'Cat' } }
  }
  const errors = (body: unknown) => bodyErrors(t, schema, body, '3.0.0', { schemas })

  t.same(errors({ kind: 'cat', claws: 4 }), [])
  t.same(errors({ kind: 'tiger', claws: 4 }), [])
  t.same(errors({ kind: 'dog', bark: true }), [])
  t.same(errors({ kind: 'Bird', wings: 2 }), [])
  t.same(errors({ kind: 'dog', bark: 'x' }), [{ path: '/bark', message: 'must be boolean' }])
  t.match(errors({ kind: 'fish' }), [{ path: '/kind', message: /must be one of "cat", "tiger", "dog", "Bird"/ }])
  t.match(errors({}), [{ path: '/kind', message: 'is required' }])
})

t.test('read-only properties are not required in a request, and defaults are not inserted', async (t) => {
  const schema = {
    type: 'object',
    required: ['id', 'name'],
    properties: {
      id: { type: 'string', readOnly: true },
      name: { type: 'string' },
      level: { type: 'integer', default: 3 }
    }
  }
  const body = { name: 'x' }

  t.same(bodyErrors(t, schema, body), [])
  t.same(body, { name: 'x' })
})

t.test('path and query parameters are validated as the numbers and lists that they stand for', async (t) => {
  const parameters = [
    { name: 'id', in: 'path', required: true, schema: { type: 'integer' } },
    { name: 'limit', in: 'query', schema: { type: 'integer', maximum: 100 } },
    { name: 'tags', in: 'query', schema: { type: 'array', items: { type: 'integer' } } },
    { name: 'room', in: 'query', schema: { type: ['integer', 'string'] } },
    { name: 'ids', in: 'query', explode: false, schema: { type: 'array', items: { type: 'integer' }, maxItems: 2 } },
    { name: 'filter', in: 'query', content: { 'application/json': { schema: { type: 'object' } } } },
    { name: 'since', in: 'query', required: true, schema: { type: 'string', format: 'date' } }
  ]
  const operation = only(read(t, { 'openapi.json': document({ paths: { '/x/{id}': { parameters, get: {} } } }) }))
  const errors = (id: string, query: Record<string, string | string[]>) =>
    parameterErrors(operation.parameters, { id, since: '2026-01-02', ...query })

  t.same(errors('7', { limit: '10', tags: ['1', '2'], ids: '1,2', filter: '{"a":1}', other: 'x' }), [])
  t.same(errors('7', { room: '12b' }), [], 'a number or another text')
  t.match(errors('x', {}), [{ path: 'id', message: 'must be integer' }])
  t.match(errors('7', { limit: '101' }), [{ path: 'limit', message: 'must be <= 100' }])
  t.match(errors('7', { limit: ['1', '2'] }), [{ path: 'limit', message: 'must not be repeated' }])
  t.match(errors('7', { tags: ['1', 'x'] }), [{ path: 'tags' }])
  t.match(errors('7', { ids: '1,2,3' }), [{ path: 'ids' }])
  t.match(errors('7', { filter: '{' }), [{ path: 'filter', message: 'must be JSON' }])
  t.match(errors('7', { since: 'yesterday' }), [{ path: 'since' }])
})

t.test('a parameter of the operation replaces the same parameter of the path', async (t) => {
  const parameter = (maximum: number) => ({ name: 'limit', in: 'query', schema: { type: 'integer', maximum } })
  const paths = { '/x': { parameters: [parameter(10)], get: { parameters: [parameter(20)] } } }
  const { parameters } = only(read(t, { 'openapi.json': document({ paths }) }))

  t.same(parameterErrors(parameters, { limit: '15' }), [])
  t.equal(parameterErrors(parameters, { limit: '25' }).length, 1)
})

t.test('bodies that are not JSON are recognised by their media type', async (t) => {
  const requestBody = {
    required: true,
    content: { 'multipart/form-data': {}, 'text/csv; charset=utf-8': {}, 'application/merge-patch+json': {} }
  }
  const operation = only(read(t, { 'openapi.json': document({ paths: { '/x': { post: { requestBody } } } }) }))

  t.equal(operation.body?.isRequired, true)
  t.same([...(operation.body?.streamed ?? [])], ['multipart/form-data', 'text/csv'])
  t.same(jsonErrors(operation, { anything: true }, 'application/merge-patch+json'), [])
})

t.test('a long list of invalid entries is not reported entry by entry', async (t) => {
  const body = Array.from({ length: 100_000 }, () => 'x')

  t.equal(bodyErrors(t, { type: 'array', items: { type: 'integer' } }, body)?.length, 1)
})

t.test('a fragment of a path is ignored with a warning, and an operation without one takes precedence', async (t) => {
  const json = { content: { 'application/json': { schema: { type: 'object' } } } }
  const paths = {
    '/files/{id}#share': { put: { requestBody: json }, post: {} },
    '/files/{id}': { put: {} },
    '/files/{id}#unshare': { put: {} }
  }
  const description = read(t, { 'openapi.json': document({ paths }) })

  t.same(
    operationsOf(description).map(({ method, path, body }) => [method, path, body]),
    [
      ['PUT', '/api/files/:id', null],
      ['POST', '/api/files/:id', null]
    ]
  )
  const at = 'openapi.json#/paths/~1files~1{id}'
  t.same(description.warnings, [
    { location: `${at}#share/post`, message: 'fragment of the path ignored, requests do not contain it' },
    { location: `${at}#share/put`, message: `operation ignored, ${at}/put is the same without a fragment` },
    { location: `${at}#unshare/put`, message: `operation ignored, ${at}/put is the same without a fragment` }
  ])
})

t.test('operations that differ in their fragment only, or have an access level there, are errors', async (t) => {
  const twice = { '/a#b': { get: {} }, '/a#c': { get: {} } }
  t.match(errorsOf(t, { 'openapi.json': document({ paths: twice }) }), [/~1a#c\/get: the same method and path as/])
  const levels = { '/a': { get: {} }, '/a#b': { get: { 'x-gatehouse-access': 'admin' } } }
  t.match(errorsOf(t, { 'openapi.json': document({ paths: levels }) }), [
    /~1a#b\/get\/x-gatehouse-access: has no effect/
  ])
})

t.test('null instead of a schema is a warning, and every value is valid', async (t) => {
  const paths = {
    '/a': {
      get: { parameters: [{ name: 'q', in: 'query', schema: null }] },
      post: { requestBody: { content: { 'application/json': { schema: null } } } }
    }
  }
  const description = read(t, { 'openapi.json': document({ paths }) })
  const [get, post] = operationsOf(description)

  t.same(get?.parameters[0]?.validate('x'), [])
  t.same(post?.body?.json.get('application/json')?.([1, 'x']), [])
  t.same(
    description.warnings.map(({ location, message }) => `${location}: ${message}`),
    ['get/parameters/0/schema', 'post/requestBody/content/application~1json/schema'].map(
      (pointer) => `openapi.json#/paths/~1a/${pointer}: null instead of a schema, every value is valid`
    )
  )
})
