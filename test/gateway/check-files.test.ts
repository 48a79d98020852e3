import { join } from 'node:path'
import t, { type Test } from 'tap'
import { checkGatewayFiles } from '../../src/gateway/check-files.js'
import { folderOf } from './upstreams/upstreams-fixture.js'

/** The warnings and errors of a gateway with these files. */
const check = async (t: Test, files: Readonly<Record<string, unknown>>, env: Readonly<Record<string, string>> = {}) => {
  const texts = Object.entries(files).map(([name, content]) => [name, JSON.stringify(content)])
  const folder = folderOf(t, Object.fromEntries(texts))
  const settings = { GATEWAY_UPSTREAMS: 'rows.json', GATEWAY_LIMITS: 'limits.json', GATEWAY_ROUTES: 'routes.json' }
  const named = Object.entries(settings).filter(([, name]) => name in files)
  const paths = Object.fromEntries(named.map(([setting, name]) => [setting, join(folder, name)]))
  const { warnings, errors } = await checkGatewayFiles({ NODE_ENV: 'development', ...paths, ...env })
  return { warnings, errors }
}

const row = (name: string, fields: object = {}) => ({
  name,
  url: 'http://127.0.0.1:9',
  paths: [`/${name}`],
  routes: `${name}.json`,
  ...fields
})

const limit = (path: string) => ({ name: 'a', paths: [path], by: 'user', rate: 1 })

t.test('the errors of routes, rows and their documents are reported together', async (t) => {
  const { errors } = await check(
    t,
    {
      'rows.json': [row('shop'), row('wiki'), row('self', { url: 'http://127.0.0.1:3456', routes: undefined })],
      'shop.json': { openapi: '2.0' },
      'routes.json': { openapi: '1.0' }
    },
    { GATEWAY_PORT: '3456' }
  )
  t.match(errors, [
    /^GATEWAY_UPSTREAMS rows\.json:1: entry 3, url must not be the address of the gateway itself$/,
    /^routes\.json: "openapi"/,
    /^GATEWAY_UPSTREAMS routes of shop: shop\.json/,
    /^GATEWAY_UPSTREAMS routes of wiki: wiki\.json: cannot be read \(ENOENT\)$/
  ])
})

t.test('a limit must name a declared route, which may be one of a row', async (t) => {
  const files = {
    'rows.json': [row('shop')],
    'shop.json': { openapi: '3.1.0', paths: { '/items/{id}': { get: {} } } }
  }
  t.same(await check(t, { ...files, 'limits.json': [limit('/shop/items/{id}')] }), { warnings: [], errors: [] })
  t.match(await check(t, { ...files, 'limits.json': [limit('/shop/item/{id}')] }), {
    errors: ['GATEWAY_LIMITS limits.json:1: entry 1, paths.0 must not be /shop/item/{id}, which is not a route']
  })
})

t.test('errors behind other errors are reported with them', async (t) => {
  const rows = [
    { name: 'one', url: 'ftp://a', paths: ['/shop'] },
    row('two', { paths: ['/shop'], routes: undefined }),
    row('self', { url: 'http://127.0.0.1:3456', routes: undefined })
  ]
  const limits = [limit('/api/nothing/{id}'), { name: 'B', paths: ['/api/none/{id}'], by: 'user', rate: 1 }]
  const env = { GATEWAY_PORT: '3456', LOG_LEVEL: 'loud' }
  t.strictSame((await check(t, { 'rows.json': rows }, env)).errors, [
    'LOG_LEVEL must be one of trace, debug, info, warn, error, fatal, silent, not "loud"',
    'GATEWAY_UPSTREAMS rows.json:1: entry 1, url must be an http or https address without user, query or fragment',
    'GATEWAY_UPSTREAMS rows.json:1: entry 2, paths.0 must not be /shop, which one has for the same hosts',
    'GATEWAY_UPSTREAMS rows.json:1: entry 3, url must not be the address of the gateway itself'
  ])
  t.strictSame((await check(t, { 'limits.json': limits }, env)).errors, [
    'LOG_LEVEL must be one of trace, debug, info, warn, error, fatal, silent, not "loud"',
    'GATEWAY_LIMITS limits.json:1: entry 2, name must be lower-case letters, digits and -, at most 64',
    'GATEWAY_LIMITS limits.json:1: entry 1, paths.0 must not be /api/nothing/{id}, which is not a route',
    'GATEWAY_LIMITS limits.json:1: entry 2, paths.0 must not be /api/none/{id}, which is not a route'
  ])
})

t.test('the warnings name the public operations of rows', async (t) => {
  const paths = { '/news': { get: { security: [] }, query: {} }, '/account': { get: { security: [] } } }
  const { warnings } = await check(t, {
    'rows.json': [row('shop', { strict_paths: ['/shop/account'] })],
    'shop.json': { openapi: '3.1.0', paths }
  })
  t.same(warnings, [
    'shop: shop.json#/paths/~1news/query: unknown method or field ignored',
    'shop: public: GET /shop/news'
  ])
})

t.test('paths that differ only in spelling are errors, in a document, a row and the lists', async (t) => {
  const routes = { openapi: '3.1.0', paths: { '/api/carts/{id}': { get: {} }, '/api/Carts': { get: {} } } }
  const rejected = 'other spellings are rejected'
  t.same((await check(t, { 'routes.json': routes })).errors, [
    `/api/Carts must not exist beside /api/carts/{id}: ${rejected}`
  ])
  const rows = { 'rows.json': [row('shop', { routes: undefined }), row('Shop', { name: 'other', routes: undefined })] }
  t.match((await check(t, rows)).errors, [/^GATEWAY_UPSTREAMS .*which shop has for the same hosts/])
  const hosts = [
    row('shop', { routes: undefined, hosts: ['a'] }),
    row('Shop', { name: 'b', routes: undefined, hosts: ['b'] })
  ]
  t.same((await check(t, { 'rows.json': hosts })).errors, [`/Shop must not exist beside /shop: ${rejected}`])
  const GATEWAY_STRICT_PATHS = '/api/carts,/api/Carts'
  t.equal((await check(t, {}, { GATEWAY_STRICT_PATHS })).errors.length, 1)
  t.equal((await check(t, { 'limits.json': [limit('/api/Zones')] })).errors.length, 1)
})
