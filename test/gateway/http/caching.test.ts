import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import t from 'tap'
import { setCookie } from '../../../src/gateway/session/cookies.js'
import { borrowGateway, startGateway, tokenOf } from '../../helper/gateway.js'

const PUBLIC = 'public, max-age=60'
const COOKIE = 'a=1'

/** Ways to send a response with a cookie that a handler has made cacheable. */
const WAYS: Readonly<Record<string, (reply: FastifyReply) => unknown>> = {
  'as text': (reply) => reply.send('x'),
  'as a stream': (reply) => reply.send(Readable.from(['x'])),
  'as a redirect': (reply) => reply.redirect('/x'),
  'as an unchanged file': (reply) => reply.code(304).send(),
  'as an error': () => {
    throw new Error('x')
  },
  'past Fastify, with headers in an object': (reply) => {
    reply.hijack().raw.writeHead(200, 'OK', { 'Set-Cookie': COOKIE, 'Cache-Control': PUBLIC, Expires: '1' }).end()
  },
  'past Fastify, with headers as the third argument': (reply) => {
    const headers = { 'Set-Cookie': COOKIE, 'Cache-Control': PUBLIC }
    // Node permits it, its types do not.
    const { raw } = reply.hijack()
    Reflect.apply(raw.writeHead, raw, [200, undefined, headers])
    raw.end()
  },
  'past Fastify, with headers in a list': (reply) => {
    reply.hijack().raw.writeHead(200, ['Set-Cookie', COOKIE, 'Cache-Control', PUBLIC, 'cache-control', 'x']).end()
  },
  'past Fastify, with headers in pairs': (reply) => {
    const pairs = [
      ['Set-Cookie', COOKIE],
      ['Cache-Control', PUBLIC]
    ]
    reply.hijack().raw.writeHead(200, pairs).end()
  },
  'past Fastify, with headers set before': (reply) => {
    const { raw } = reply.hijack()
    raw.setHeader('Set-Cookie', COOKIE)
    raw.setHeader('CDN-Cache-Control', PUBLIC)
    raw.setHeader('Cache-Control', PUBLIC)
    raw.end('x')
  },
  'past Fastify, with the cookie set before and a list': (reply) => {
    const { raw } = reply.hijack()
    raw.setHeader('Set-Cookie', COOKIE)
    raw.writeHead(200, ['Cache-Control', PUBLIC, 'X-Accel-Expires', '60']).end()
  }
}

t.test('a response with a cookie is not cacheable', async (t) => {
  const gateway = await startGateway(t, {
    extend: (app) =>
      void app.register(async (scope) => {
        // Hooks of a scope run after those of the chain.
        scope.addHook('onSend', async (_request, reply, payload) => {
          reply.headers({ 'cache-control': PUBLIC, 'surrogate-control': 'max-age=60', expires: '1', pragma: 'x' })
          return payload
        })
        for (const [index, act] of Object.values(WAYS).entries()) {
          scope.get(`/ways/${index}`, (_request, reply) => {
            setCookie(reply, 'a', '1', {})
            return act(reply)
          })
        }
      })
  })
  for (const [index, title] of Object.keys(WAYS).entries()) {
    t.test(`a response with a cookie is not cacheable if it is sent ${title}`, async (t) => {
      const { headers } = await gateway.send(`/ways/${index}`)
      t.same(headers['set-cookie'], [COOKIE])
      t.equal(headers['cache-control'], 'no-store')
      for (const name of ['surrogate-control', 'cdn-cache-control', 'x-accel-expires', 'expires', 'pragma'])
        t.equal(headers[name], undefined, name)
    })
  }
})

/** The caching headers of a backend, and those of the response to a request with a session. */
const PERSONAL: readonly (readonly [backend: string, response: string])[] = [
  ['public, max-age=60', 'private, max-age=60'],
  ['max-age=60, must-revalidate, immutable', 'private, max-age=60, must-revalidate, immutable'],
  ['S-MaxAge = 60, proxy-revalidate, max-age=5', 'private, max-age=5'],
  ['private', 'private'],
  ['private="x-name", max-age=60', 'private, max-age=60'],
  ['no-cache', 'private, no-cache'],
  ['NO-STORE', 'NO-STORE'],
  ['public, no-store', 'public, no-store'],
  [', ,', 'private'],
  ['x="a, no-store, b"', 'private, x="a, no-store, b"']
]

t.test('a backend response to a request with a session is private', async (t) => {
  for (const [given, expected] of PERSONAL) {
    t.test(`Cache-Control: ${given} becomes ${expected}`, async (t) => {
      const { send, backend } = await borrowGateway(t)
      backend.respond = (_request, response) => response.writeHead(200, { 'cache-control': given }).end('{}')
      const withSession = await send('/api/things', { headers: { cookie: `auth_token=${tokenOf('operator')}` } })
      t.equal(withSession.headers['cache-control'], expected)
      t.equal((await send('/api/things')).headers['cache-control'], given, 'without a session it is unchanged')
    })
  }

  t.test('several lines of Cache-Control become one private line', async (t) => {
    const { send, backend } = await borrowGateway(t)
    backend.respond = (_request, response) =>
      response.writeHead(304, ['cache-control', 'public, max-age=60', 'cache-control', 'immutable']).end()
    const { headers } = await send('/api/things', { headers: { authorization: 'Bearer a.b.c' } })
    t.equal(headers['cache-control'], 'private, max-age=60, immutable')
  })

  t.test('Vary: Authorization of the backend becomes Authorization, Cookie', async (t) => {
    const { send, backend } = await borrowGateway(t)
    for (const [given, expected] of [
      ['Authorization', 'Authorization, Cookie'],
      ['Accept, authorization', 'Accept, authorization, Cookie'],
      ['Accept', 'Accept'],
      ['*', '*']
    ] as const) {
      backend.respond = (_request, response) => response.writeHead(200, { vary: given }).end('{}')
      t.equal((await send('/api/things')).headers.vary, expected)
    }
  })
})
