import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Validator } from '@seriousme/openapi-schema-validator'
import t, { type Test } from 'tap'
import { ROOT } from '../../../scripts/lib/root.js'
import { startGateway } from '../../helper/gateway.js'
import { memberAt } from '../../helper/member-at.js'
import { startUpstreams } from '../upstreams/upstreams-fixture.js'

const documentFor = async (t: Test, file: string) => {
  const { send } = await startGateway(t, { env: { GATEWAY_ROUTES: file, API_DOCS: 'true' } })
  return JSON.parse((await send('/api/docs/json')).body)
}

/** All references in a document. */
const referencesIn = (value: unknown): string[] => {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) =>
    name === '$ref' && typeof member === 'string' ? [member] : referencesIn(member)
  )
}

const targetOf = (document: unknown, reference: string): unknown => memberAt(document, reference.slice(2).split('/'))

t.test('/api/docs describes the operations of the document with the access of the gateway', async (t) => {
  const folder = t.testdir({
    'models.json': JSON.stringify({
      Node: { type: 'object', properties: { children: { type: 'array', items: { $ref: '#/Node' } } } }
    })
  })
  const file = join(folder, 'openapi.json')
  const schemas = {
    Floor: {
      type: 'object',
      properties: { name: { type: 'string', nullable: true }, tree: { $ref: 'models.json#/Node' } }
    },
    ErrorBody: { type: 'object', description: 'The errors of the backend.' }
  }
  const content = (name: string) => ({ 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } })
  const put = {
    operationId: 'changeFloor',
    tags: ['floors'],
    'x-gatehouse-access': 'admin',
    security: [{ oauth: ['write'] }],
    requestBody: { required: true, content: content('Floor') },
    responses: { 200: { description: 'Changed.' }, 400: { description: 'Invalid.', content: content('ErrorBody') } }
  }
  const parameters = [{ name: 'id', in: 'path', required: true, schema: { type: 'integer' } }]
  writeFileSync(
    file,
    JSON.stringify({
      openapi: '3.0.3',
      info: { title: 'x', version: '1' },
      tags: [{ name: 'floors', description: 'Floors of a building' }],
      paths: { '/floors/{id}': { parameters, put, get: {} }, '/floors': { get: {} } },
      components: { schemas, securitySchemes: { oauth: { type: 'http', scheme: 'bearer' } } }
    })
  )
  const document = await documentFor(t, file)
  const operation = document.paths['/api/floors/{id}'].put

  t.match(operation, { operationId: 'changeFloor', tags: ['floors'], security: [{ session: [], csrf: [] }] })
  t.same(operation.parameters, parameters)
  t.same(operation.requestBody.content, content('Floor'))
  t.same(Object.keys(operation.responses), ['200', '400', '401', '403', '413', '415', '502', '503', '504'])
  t.match(document.paths['/api/floors/{id}'].get.responses[400].description, 'VALIDATION_FAILED')
  t.notOk('400' in document.paths['/api/floors'].get.responses)
  t.equal(operation.responses[400].description, 'Invalid.', 'a response of the document takes precedence')
  t.same(operation.responses[400].content, content('ErrorBody_2'))
  t.equal(document.components.schemas.ErrorBody_2.description, 'The errors of the backend.')
  t.same(document.components.schemas.Floor.properties.name, { type: ['string', 'null'] })
  t.same(document.components.schemas.Node.properties.children.items, { $ref: '#/components/schemas/Node' })
  t.notOk(document.components.securitySchemes.oauth)
  t.ok(document.tags.some(({ name }: { name: string }) => name === 'floors'))
  t.ok(document.paths['/api/auth/login'])
  t.notOk(document.paths['/api/zones'])
  t.match(await new Validator().validate(document), { valid: true })
})

for (const name of ['test/openapi/fixtures/shop.yaml', 'test/openapi/fixtures/trains.yaml']) {
  t.test(`every reference in the description made from ${name} has a target`, async (t) => {
    const document = await documentFor(t, join(ROOT, name))
    const references = new Set(referencesIn(document.paths).concat(referencesIn(document.components)))

    t.ok(references.size > 5)
    t.same(
      [...references].filter((reference) => targetOf(document, reference) === undefined),
      []
    )
  })
}

t.test('/api/docs shows the access that the path lists give to built-in and described routes', async (t) => {
  const file = join(t.testdir({}), 'openapi.json')
  const operations = { get: {}, post: {} }
  writeFileSync(
    file,
    JSON.stringify({
      openapi: '3.1.0',
      paths: {
        '/news': operations,
        '/reports/{id}': operations,
        '/users': operations,
        '/users/me': { get: { 'x-gatehouse-access': 'public' } },
        '/floors': operations
      }
    })
  )
  const lists = {
    API_DOCS: 'true',
    GATEWAY_PUBLIC_PATHS: '/api/news,/api/zones',
    GATEWAY_STRICT_PATHS: '/api/reports,/api/floors/hidden',
    GATEWAY_ADMIN_PATHS: '/api/users,/api/personnel'
  }
  const pathsWith = async (env: Readonly<Record<string, string>>) => {
    const { send } = await startGateway(t, { hasAllRoutes: true, env: { ...lists, ...env } })
    return JSON.parse((await send('/api/docs/json')).body).paths
  }
  const [custom, builtIn] = [await pathsWith({ GATEWAY_ROUTES: file }), await pathsWith({})]
  const backendDecides = [{ session: [] }, {}]
  const [session, csrf, both] = [[{ session: [] }], [{ csrf: [] }], [{ session: [], csrf: [] }]]

  const CASES: readonly (readonly [typeof custom, string, unknown, boolean, boolean])[] = [
    [custom, 'GET /api/news', backendDecides, false, false],
    [custom, 'POST /api/news', csrf, false, false],
    [custom, 'GET /api/reports/{id}', session, true, false],
    [custom, 'POST /api/reports/{id}', both, true, false],
    [custom, 'GET /api/users', session, true, true],
    [custom, 'GET /api/users/me', session, true, true],
    [custom, 'GET /api/floors', backendDecides, false, false],
    [custom, 'POST /api/floors', both, true, false],
    [builtIn, 'POST /api/zones', csrf, false, false],
    [builtIn, 'GET /api/personnel', session, true, true],
    [builtIn, 'GET /api/audit/logs', backendDecides, false, false]
  ]
  for (const [paths, operation, security, isRejected, isForAdmins] of CASES) {
    const [method = '', path = ''] = operation.split(' ')
    const { responses, ...documented } = paths[path][method.toLowerCase()]
    t.same(documented.security, security, operation)
    t.equal('401' in responses, isRejected, operation)
    t.equal(/FORBIDDEN/.test(responses[403]?.description), isForAdmins, operation)
  }
})

t.test('/api/docs describes the operations of rows with their paths, hosts and access', async (t) => {
  const schemas = { Item: { type: 'object', properties: { name: { type: 'string' } } } }
  const content = { 'application/json': { schema: { $ref: '#/components/schemas/Item' } } }
  const document = (title: string, paths: object) =>
    JSON.stringify({
      openapi: '3.0.3',
      info: { title, version: '1' },
      tags: [{ name: 'items', description: title }],
      paths,
      components: { schemas }
    })
  const post = { operationId: 'addItem', tags: ['items'], requestBody: { content }, responses: {} }
  const get = { operationId: 'health', responses: { 200: { description: 'ok' } } }
  const rows = [
    { name: 'shop', paths: ['/shop'], routes: 'shop.json', strict_paths: ['/shop/items'] },
    { name: 'wiki', hosts: ['wiki.example.com'], paths: ['/'], routes: 'wiki.json', admin_paths: ['/items'] }
  ]
  const { send } = await startUpstreams(t, rows, {
    env: { API_DOCS: 'true' },
    files: {
      'shop.json': document('Shop', { '/items': { post }, '/state': { get } }),
      'wiki.json': document('Wiki', { '/items': { post }, '/shop/items': { get }, '/state': { get } })
    }
  })
  const described = JSON.parse((await send('/api/docs/json')).body)
  t.match(described.paths['/shop/items'], {
    post: { operationId: 'addItem', security: [{ session: [], csrf: [] }], responses: { 401: {}, 403: {} } }
  })
  t.notOk('servers' in described.paths['/shop/items'])
  t.notOk('get' in described.paths['/shop/items'], 'the path of the first row')
  const wiki = described.paths['/items']
  t.same(wiki.servers, [{ url: '//wiki.example.com' }])
  t.equal(wiki.post.operationId, 'wiki_addItem')
  t.match(wiki.post.responses[403].description, /FORBIDDEN/)
  t.equal(described.paths['/shop/state'].get.operationId, 'health')
  t.equal(described.paths['/state'].get.operationId, 'wiki_health')
  t.same(wiki.post.requestBody.content['application/json'].schema, { $ref: '#/components/schemas/Item_2' })
  t.equal(described.tags.filter(({ name }: { name: string }) => name === 'items').length, 1)
  t.ok(described.paths['/api/zones'], 'the routes of BACKEND_URL')
  t.match(await new Validator().validate(described), { valid: true })
})
