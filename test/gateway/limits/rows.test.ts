import { join } from 'node:path'
import t from 'tap'
import { tokenOf } from '../../helper/gateway.js'
import { folderOf, startUpstreams } from '../upstreams/upstreams-fixture.js'

const DOCUMENT = JSON.stringify({
  openapi: '3.1.0',
  info: { title: 'Library', version: '1' },
  paths: {
    '/library/books/{id}': {
      get: {
        parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
        responses: { 200: { description: 'a book' } }
      }
    }
  }
})

t.test('limits apply to rows outside of /api/, by user and by a route of the document of a row', async (t) => {
  const limits = [
    { name: 'shop', paths: ['/shop'], by: 'user', rate: 1, per_s: 86_400, burst: 2 },
    { name: 'books', paths: ['/library/books/{id}'], by: 'user', rate: 1, per_s: 86_400 }
  ]
  const rows = [
    { name: 'shop', paths: ['/shop'] },
    { name: 'library', paths: ['/library'], routes: 'library.json' }
  ]
  const gateway = await startUpstreams(t, rows, {
    files: { 'library.json': DOCUMENT },
    env: { GATEWAY_LIMITS: join(folderOf(t, { 'limits.json': JSON.stringify(limits) }), 'limits.json') }
  })
  const get = async (path: string, user: string): Promise<number> => {
    const cookie = `auth_token=${tokenOf('operator', { userId: user })}`
    return (await gateway.send(path, { headers: { cookie } })).status
  }
  t.same(
    [
      await get('/shop/a', 'ada'),
      await get('/shop/b', 'ada'),
      await get('/shop/c', 'ada'),
      await get('/shop/d', 'bob')
    ],
    [200, 200, 429, 200]
  )
  t.same([await get('/library/books/1', 'ada'), await get('/library/books/2', 'ada')], [200, 429])
  t.equal(await get('/library/shelves', 'ada'), 200)
  t.same(gateway.received(), {
    shop: ['/shop/a', '/shop/b', '/shop/d'],
    library: ['/library/books/1', '/library/shelves']
  })
  t.match(await gateway.auditRecords(), [
    { event: 'rate_limited', resource: '/shop/c', reason: 'limit-shop', user: { id: 'ada' } },
    { event: 'rate_limited', resource: '/library/books/2', reason: 'limit-books' }
  ])
})
