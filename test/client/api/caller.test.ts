import t from 'tap'
import { ApiError, createCaller } from '../../../src/client/index.js'

interface Sent {
  readonly url: string
  readonly init: RequestInit
}

const callerWith = (respond: (sent: Sent) => Response) => {
  const sent: Sent[] = []
  const call = createCaller({
    cookies: () => 'csrf_token=token',
    fetch: async (input, init = {}) => {
      const request = { url: String(input), init }
      sent.push(request)
      return respond(request)
    }
  })
  return { call, sent }
}

t.test('a caller sends the query of a read without a CSRF token', async (t) => {
  const { call, sent } = callerWith(() => Response.json({ a: 1 }))

  t.same(await call('GET', '/api/floors', { query: { limit: 2, tag: ['a', 'b'] } }), { a: 1 })
  t.equal(sent[0]?.url, '/api/floors?limit=2&tag=a&tag=b')
  t.same(sent[0]?.init.headers, { accept: 'application/json' })
})

t.test('a caller sends a write request as JSON with the CSRF token', async (t) => {
  const { call, sent } = callerWith(() => new Response(null, { status: 204 }))

  t.equal(await call('PUT', '/api/floors/1', { body: { name: 'x' } }), null)
  t.match(sent[0]?.init, {
    method: 'PUT',
    body: '{"name":"x"}',
    headers: { 'content-type': 'application/json', 'x-csrf-token': 'token' }
  })
})

t.test('a caller sends forms and texts as they are', async (t) => {
  const { call, sent } = callerWith(() => Response.json({}))
  const form = new FormData()
  await call('POST', '/api/files', { body: form })
  await call('POST', '/api/files', { body: 'a,b' })

  t.equal(sent[0]?.init.body, form)
  t.equal(sent[1]?.init.body, 'a,b')
  t.notMatch(sent[0]?.init.headers, { 'content-type': String })
})

t.test('a caller rejects with the error of the gateway', async (t) => {
  const error = { success: false, error: { code: 'FORBIDDEN', message: 'no' }, requestId: 'r' }
  const { call } = callerWith(() => Response.json(error, { status: 403 }))

  await t.rejects(call('GET', '/api/admin'), ApiError)
  await t.rejects(call('GET', '/api/admin'), { code: 'FORBIDDEN', status: 403, requestId: 'r' })
})
