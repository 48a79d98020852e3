import type { FastifyRequest } from 'fastify'
import t from 'tap'
import { browserHeaders, startGateway, tokenOf } from '../../helper/gateway.js'

/** An exchange that returns this token for every request and records its calls. */
const exchangeOf = (token: string | null) => {
  const requests: string[] = []
  return {
    requests,
    exchange: async ({ method, path }: FastifyRequest) => {
      requests.push(`${method} ${path}`)
      return token
    }
  }
}

t.test('the session exchange', async (t) => {
  t.test('the request that causes the exchange is forwarded with the new token', async (t) => {
    const exchange = exchangeOf('new.app.token')
    const { send, backend } = await startGateway(t, { exchange })

    t.equal((await send('/api/things')).status, 200)

    t.same(exchange.requests, ['GET /api/things'])
    t.equal(backend.requests[0]?.headers.authorization, 'Bearer new.app.token')
  })

  t.test('a request without a provider session is forwarded without a token', async (t) => {
    const { send, backend } = await startGateway(t, { exchange: exchangeOf(null) })
    t.equal((await send('/api/things')).status, 200)
    t.equal(backend.requests[0]?.headers.authorization, undefined)
  })

  t.test('a page request causes an exchange', async (t) => {
    const exchange = exchangeOf(null)
    const { send } = await startGateway(t, { exchange })
    await send('/floors')
    t.same(exchange.requests, ['GET /floors'])
  })

  t.test('a request with an app token, valid or not, causes no exchange', async (t) => {
    const exchange = exchangeOf('new.app.token')
    const { send, backend } = await startGateway(t, { exchange })
    for (const token of [tokenOf('operator'), 'ex.pi.red', 'un usable']) {
      await send('/api/things', { headers: { cookie: `auth_token=${token}` } })
    }
    t.same(exchange.requests, [])
    t.same(
      backend.requests.map(({ headers }) => headers.authorization?.slice(0, 9)),
      ['Bearer ey', 'Bearer ex', undefined]
    )
  })

  t.test('a request whose token cookie is empty, null or undefined causes an exchange', async (t) => {
    const exchange = exchangeOf('new.app.token')
    const { send, backend } = await startGateway(t, { exchange })
    for (const cookie of ['auth_token=', 'auth_token=null', 'auth_token=undefined', 'auth_token=null; auth_token='])
      await send('/api/things', { headers: { cookie } })
    t.equal(exchange.requests.length, 4)
    t.same(
      backend.requests.map(({ headers }) => headers.authorization),
      Array(4).fill('Bearer new.app.token')
    )
  })

  t.test('the exchange runs after authentication: a write request without an app token is rejected', async (t) => {
    const exchange = exchangeOf('new.app.token')
    const { send, backend } = await startGateway(t, { exchange })
    const response = await send('/api/things', { method: 'POST', headers: browserHeaders(null) })
    t.equal(response.code, 'UNAUTHENTICATED')
    t.same(exchange.requests, [])
    t.same(backend.requests, [])
  })

  t.test('a request that an earlier step rejected causes no exchange', async (t) => {
    const exchange = exchangeOf('new.app.token')
    const { send } = await startGateway(t, { exchange })
    for (const path of ['/api//things', '/api/admin', '/api/audit/logs']) await send(path)
    await send('/api/things', { method: 'POST' })
    t.same(exchange.requests, [])
  })
})
