import type { FastifyRequest } from 'fastify'
import t from 'tap'
import { browserHeaders, startGateway, tokenOf } from '../../helper/gateway.js'

/** A provider that exchanges every session it is shown for this token, and writes down when it was asked. */
const providerWith = (token: string | null) => {
  const asked: string[] = []
  return {
    asked,
    exchange: async ({ method, path }: FastifyRequest) => {
      asked.push(`${method} ${path}`)
      return token
    }
  }
}

t.test('the session exchange', async (t) => {
  t.test('sends the very request that made it on with the new token', async (t) => {
    const provider = providerWith('new.app.token')
    const { send, backend } = await startGateway(t, { provider })

    t.equal((await send('/api/things')).status, 200)

    t.same(provider.asked, ['GET /api/things'])
    t.equal(backend.requests[0]?.headers.authorization, 'Bearer new.app.token')
  })

  t.test('lets the request go on without a token where there is no session to exchange', async (t) => {
    const { send, backend } = await startGateway(t, { provider: providerWith(null) })
    t.equal((await send('/api/things')).status, 200)
    t.equal(backend.requests[0]?.headers.authorization, undefined)
  })

  t.test('is made on a page too, not only under /api/', async (t) => {
    const provider = providerWith(null)
    const { send } = await startGateway(t, { provider })
    await send('/floors')
    t.same(provider.asked, ['GET /floors'])
  })

  t.test('is not made where the browser has an app token, good or not', async (t) => {
    const provider = providerWith('new.app.token')
    const { send, backend } = await startGateway(t, { provider })
    for (const token of [tokenOf('operator'), 'ex.pi.red', 'un usable']) {
      await send('/api/things', { headers: { cookie: `auth_token=${token}` } })
    }
    t.same(provider.asked, [])
    t.same(
      backend.requests.map(({ headers }) => headers.authorization?.slice(0, 9)),
      ['Bearer ey', 'Bearer ex', undefined]
    )
  })

  t.test('is made where the cookie is empty, null or undefined', async (t) => {
    const provider = providerWith('new.app.token')
    const { send, backend } = await startGateway(t, { provider })
    for (const cookie of ['auth_token=', 'auth_token=null', 'auth_token=undefined', 'auth_token=null; auth_token='])
      await send('/api/things', { headers: { cookie } })
    t.equal(provider.asked.length, 4)
    t.same(
      backend.requests.map(({ headers }) => headers.authorization),
      Array(4).fill('Bearer new.app.token')
    )
  })

  t.test('comes after authentication: a first mutation is refused and nothing is exchanged', async (t) => {
    const provider = providerWith('new.app.token')
    const { send, backend } = await startGateway(t, { provider })
    const answer = await send('/api/things', { method: 'POST', headers: browserHeaders(null) })
    t.equal(answer.code, 'UNAUTHENTICATED')
    t.same(provider.asked, [])
    t.same(backend.requests, [])
  })

  t.test('is not made for a request that an earlier step refused', async (t) => {
    const provider = providerWith('new.app.token')
    const { send } = await startGateway(t, { provider })
    for (const path of ['/api//things', '/api/admin', '/api/audit/logs']) await send(path)
    await send('/api/things', { method: 'POST' })
    t.same(provider.asked, [])
  })
})
