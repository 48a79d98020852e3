import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { importTables } from '../../../src/gateway/custom-routes/table-module.js'
import { SettingsError } from '../../../src/shared/env.js'
import { browserHeaders, startGateway, tokenOf } from '../../helper/gateway.js'

const ENTRY = JSON.stringify(new URL('../../../src/routes.js', import.meta.url).href)
const NAMES =
  'action, defineRoutes, del, download, get, patch, post, put, Type, upload, withAccess, withOptionalBody, withSecretPath'

/** The path of an ES module with this text, which can use all functions of `gatehouse-server/routes`. */
const moduleWith = (t: Test, text: string, name = 'routes.mjs'): string => {
  const file = join(t.testdir({}), name)
  writeFileSync(file, `import { ${NAMES} } from ${ENTRY}\n${text}\n`)
  return file
}

const TABLES = `
const Order = Type.Object({ item: Type.String({ minLength: 1 }), count: Type.Optional(Type.Integer()) }, { $id: 'Order' })

export const orders = defineRoutes({
  domain: 'orders',
  about: 'Orders of customers',
  rows: [
    get('/api/orders', 'List orders'),
    post('/api/orders', 'Create an order', Order),
    patch('/api/orders/:id', 'Change an order', Type.Partial(Order)),
    del('/api/orders/:id', 'Delete an order', Type.Object({})),
    action('/api/orders/:id/cancel', 'Cancel an order', Type.Object({ reason: Type.Optional(Type.String()) })),
    upload('/api/orders/:id/invoice', 'Upload an invoice', Type.Object({ file: Type.Any() })),
    download('/api/orders/:id/invoice', 'Download an invoice')
  ]
})

export default [
  defineRoutes({
    domain: 'reports',
    about: 'Reports',
    rows: [
      withAccess('admin', get('/api/reports', 'List reports')),
      withAccess('public', get('/api/admin/news', 'List news')),
      withAccess('public', post('/api/feedback', 'Send feedback', Type.Object({ text: Type.String() }))),
      get('/api/health', 'Check the health')
    ]
  })
]
`

t.test('an ES module declares the routes with the same functions as the built-in tables', async (t) => {
  const { send, backend, logs } = await startGateway(t, { env: { GATEWAY_ROUTES: moduleWith(t, TABLES) } })
  const status = async (method: string, path: string, body?: string, token: string | null = tokenOf('viewer')) => {
    const headers = { ...browserHeaders(token), ...(body !== undefined && { 'content-type': 'application/json' }) }
    return (await send(path, { method, headers, ...(body !== undefined && { body }) })).status
  }

  t.equal(await status('POST', '/api/orders', '{"item":"chair"}'), 200)
  t.equal(await status('POST', '/api/orders', '{"item":""}'), 400)
  t.equal(await status('PATCH', '/api/orders/7', '{"count":"x"}'), 400)
  t.equal(await status('DELETE', '/api/orders/7'), 200)
  t.equal(await status('POST', '/api/orders/7/cancel'), 200)
  t.equal(await status('PUT', '/api/orders', '{}'), 405)
  t.equal(await status('POST', '/api/orders/7/invoice', '{}'), 415)
  t.equal(await status('GET', '/api/orders/7/invoice'), 200)
  t.equal(await status('GET', '/api/reports'), 403)
  t.equal(await status('GET', '/api/reports', undefined, tokenOf('admin')), 200)
  t.equal(await status('GET', '/api/admin/news'), 403, 'admin paths win over the route')
  t.equal(await status('HEAD', '/api/reports'), 403)
  t.equal(await status('HEAD', '/api/reports', undefined, tokenOf('admin')), 200)
  t.equal(await status('POST', '/api/feedback', '{"text":"x"}', null), 200)
  t.equal(await status('POST', '/api/zones', '{"any":"thing"}'), 200, 'the built-in tables are replaced')
  t.equal(await status('GET', '/api/health'), 200)
  t.notOk(backend.requests.some(({ url }) => url === '/api/health'))
  t.match(
    logs.filter(({ level }) => level === 40),
    [{ msg: 'operation ignored, the gateway serves this path itself', location: 'GET /api/health' }]
  )
})

t.test('/api/docs describes the routes of a module and those of the gateway', async (t) => {
  const env = { GATEWAY_ROUTES: moduleWith(t, TABLES), API_DOCS: 'true' }
  const { send } = await startGateway(t, { env })
  const { paths, components } = JSON.parse((await send('/api/docs/json')).body)

  t.match(paths['/api/orders'].post, { summary: 'Create an order', tags: ['orders'] })
  t.same(paths['/api/orders'].post.requestBody.content['application/json'].schema, {
    $ref: '#/components/schemas/Order'
  })
  t.match(components.schemas.Order, { properties: { item: { type: 'string' } } })
  t.same(paths['/api/reports'].get.security, [{ session: [] }])
  t.same(paths['/api/feedback'].post.security, [{ csrf: [] }])
  t.ok(paths['/api/auth/login'])
  t.notOk(paths['/api/zones'])
})

const errorsOf = async (t: Test, file: string): Promise<readonly string[]> => {
  try {
    await startGateway(t, { env: { GATEWAY_ROUTES: file } })
    return []
  } catch (error) {
    if (error instanceof SettingsError) return error.errors
    throw error
  }
}

t.test('the log shows the paths of a module with withSecretPath up to their first parameter', async (t) => {
  const text = `
    export const invitations = defineRoutes({
      domain: 'invitations',
      about: 'Invitations',
      rows: [
        withSecretPath(get('/api/invitations/:token', 'Read an invitation')),
        get('/api/invitations/templates', 'List templates')
      ]
    })
  `
  const { send, logs } = await startGateway(t, { env: { GATEWAY_ROUTES: moduleWith(t, text) } })
  for (const path of ['s3cr3t', 's3cr3t/x', 'templates']) await send(`/api/invitations/${path}`)

  t.same(
    logs.filter(({ msg }) => msg === 'request').map(({ path }) => path),
    ['/api/invitations/…', '/api/invitations/…', '/api/invitations/templates']
  )
})

t.test('every error of a module is reported with its location', async (t) => {
  const text = `
    const table = (domain, rows) => ({ domain, about: 'x', rows })
    export const first = table('a', [
      get('/orders', 'Outside /api'),
      get('/api/orders/*', 'Wildcard'),
      get('/api/orders/:id(\\\\d+)', 'Expression'),
      get('/api//orders', 'Empty segment'),
      post('/api/orders', 'Plain JSON schema', { type: 'object' }),
      post('/api/formats', 'Unknown format', Type.Object({ at: Type.String({ format: 'made-up' }) })),
      { method: 'TRACE', path: '/api/x' },
      { ...get('/api/local', 'Local'), kind: 'local' },
      withAccess('root', get('/api/access', 'Access')),
      get('/api/same/:id', 'Same'),
      get('/api/same/:name', 'Same again'),
      post('/api/ref', 'Unresolved reference', Type.Object({ a: Type.Ref('Missing') })),
      withSecretPath(get('/api/secrets', 'Secret without a parameter')),
      { ...get('/api/secrets/:id', 'Secret of another type'), secretPath: 'yes' }
    ])
    export const second = table('a', [])
    export const third = [get('/api/rows', 'A list of rows')]
    export default 'text'
  `
  const errors = await errorsOf(t, moduleWith(t, text))

  t.match(errors, [
    'routes.mjs: default: is not a route table, make it with defineRoutes()',
    'routes.mjs: first, row 1 (GET /orders): the path must be like /api/zones/:id',
    'routes.mjs: first, row 2 (GET /api/orders/*): the path must be like /api/zones/:id',
    'routes.mjs: first, row 3 (GET /api/orders/:id(\\d+)): the path must be like /api/zones/:id',
    'routes.mjs: first, row 4 (GET /api//orders): requests with this path would be rejected',
    'routes.mjs: first, row 5 (POST /api/orders), body: must be a TypeBox schema',
    'routes.mjs: first, row 6 (POST /api/formats), body: the format "made-up" is not registered',
    'routes.mjs: first, row 7: is not a route, make it with get(), post() or another function of gatehouse-server/routes',
    'routes.mjs: first, row 8 (GET /api/local): make it with get() or download()',
    'routes.mjs: first, row 9 (GET /api/access): access must be one of public, user, admin',
    'routes.mjs: first, row 11 (GET /api/same/:name): the same method and path as routes.mjs: first, row 10 (GET /api/same/:id)',
    /^routes\.mjs: first, row 12 \(POST \/api\/ref\), body: .*Missing/,
    'routes.mjs: first, row 13 (GET /api/secrets): a secret path needs a parameter, such as /api/invitations/:token',
    'routes.mjs: first, row 14 (GET /api/secrets/:id): secretPath must be true or false',
    'routes.mjs: second: the domain "a" exists already',
    'routes.mjs: third[0]: is not a route table, make it with defineRoutes()'
  ])
})

t.test('a module that awaits something which never happens is reported', async (t) => {
  const file = moduleWith(t, 'await new Promise(() => {})')

  await t.rejects(importTables(file, 1), {
    errors: ['routes.mjs: not loaded within 0.001 s, it awaits something']
  })
})

t.test('a module that cannot be imported is reported in one line', async (t) => {
  t.match(await errorsOf(t, join(t.testdir({}), 'missing.mjs')), [
    /^GATEWAY_ROUTES must name a readable file \(ENOENT\): .*missing\.mjs$/
  ])
  t.match(await errorsOf(t, moduleWith(t, 'export default {', 'syntax.mjs')), [/^syntax\.mjs/])
  t.same(await errorsOf(t, moduleWith(t, "\nthrow new Error('first\\nsecond')", 'throws.mjs')), [
    'throws.mjs:3:7: first second'
  ])
  t.same(await errorsOf(t, moduleWith(t, "throw 'text'", 'text.mjs')), ['text.mjs: text'])
  t.same(await errorsOf(t, moduleWith(t, '', 'empty.mjs')), ['empty.mjs: exports no route table'])
  t.match(await errorsOf(t, 'routes.txt'), [/^GATEWAY_ROUTES must end in \.json, \.yaml, \.yml, /])
})
