import { once } from 'node:events'
import { t } from 'tap'
import { backendReachable, type ReachableOptions } from '../../../src/gateway/health/backend-health.js'
import { freePort } from '../../helper/free-port.js'
import { startBackend } from '../../helper/recording-backend.js'
import { startRawBackend } from '../../helper/scripted-backend.js'

/** Long enough for a busy machine. Tests of the timeout use a shorter one. */
const PATIENCE_MS = 60_000

const checkOf = (origin: string, pathPrefix = '', options: ReachableOptions = {}) =>
  backendReachable({ origin, pathOf: (path) => `${pathPrefix}${path}` }, { timeoutMs: PATIENCE_MS, ...options })

t.test('the check of the backend', async (t) => {
  t.test('the backend check requests the health path below the prefix without credentials', async (t) => {
    const backend = await startBackend(t)

    const state = await checkOf(backend.url, '/v2')()

    t.match(state, { status: 'up', latencyMs: Number })
    t.match(backend.requests, [{ method: 'GET', url: '/v2/api/health', body: '' }])
    t.strictSame(Object.keys(backend.requests[0]?.headers ?? {}), ['host', 'connection'])
  })

  t.test('the backend check measures the latency with the given clock', async (t) => {
    const backend = await startBackend(t)
    const times = [1_000, 1_012.4, 1_012.4]

    const state = await checkOf(backend.url, '', { now: () => times.shift() ?? 0 })()

    t.same(state, { status: 'up', latencyMs: 12 })
  })

  const RESPONSES: readonly (readonly [status: number, expected: 'up' | 'down'])[] = [
    [200, 'up'],
    [204, 'up'],
    [302, 'up'],
    [401, 'up'],
    [404, 'up'],
    [499, 'up'],
    [500, 'down'],
    [503, 'down']
  ]
  for (const [status, expected] of RESPONSES) {
    t.test(`a backend that responds with ${status} is ${expected}`, async (t) => {
      const backend = await startBackend(t)
      backend.respond = (_request, response) => response.writeHead(status).end()

      const state = await checkOf(backend.url)()

      if (expected === 'up') t.match(state, { status: 'up' })
      else t.same(state, { status: 'down', reason: 'error' })
    })
  }

  t.test('a backend that refuses connections is down: refused', async (t) => {
    t.same(await checkOf(`http://127.0.0.1:${await freePort()}`)(), { status: 'down', reason: 'refused' })
  })

  t.test('a broken connection to the backend is an error', async (t) => {
    const backend = await startBackend(t)
    backend.respond = (_request, { socket }) => socket?.destroy()

    t.same(await checkOf(backend.url)(), { status: 'down', reason: 'error' })
  })

  t.test('a response that is not HTTP is an error', async (t) => {
    const backend = await startBackend(t)
    backend.respond = (_request, { socket }) => socket?.end('good day\r\n\r\n')

    t.same(await checkOf(backend.url)(), { status: 'down', reason: 'error' })
  })

  t.test('a backend that does not respond times out', async (t) => {
    const backend = await startBackend(t)
    backend.respond = () => {}

    t.same(await checkOf(backend.url, '', { timeoutMs: 50 })(), { status: 'down', reason: 'timeout' })
  })

  t.test('an endless response of the backend times out', async (t) => {
    const backend = await startBackend(t)
    backend.respond = (_request, response) => response.write('{')

    t.same(await checkOf(backend.url, '', { timeoutMs: 50 })(), { status: 'down', reason: 'timeout' })
  })

  t.test('a long response of the backend is not read to its end', async (t) => {
    const backend = await startBackend(t)
    backend.respond = (_request, response) => response.write(Buffer.alloc(1024 * 1024))
    const closed = new Promise((resolve) => {
      backend.server.once('connection', (socket) => socket.once('close', () => resolve('closed')))
    })

    t.match(await checkOf(backend.url)(), { status: 'up' })
    t.equal(await closed, 'closed')
  })

  t.test('a backend that accepts a connection and sends nothing times out', async (t) => {
    const backend = await startRawBackend(t, () => {})

    const state = await checkOf(backend.url.replace('http:', 'https:'), '', { timeoutMs: 50 })()

    t.same(state, { status: 'down', reason: 'timeout' })
  })

  t.test('the backend check closes its connection', async (t) => {
    const backend = await startBackend(t)
    const connected = once(backend.server, 'connection')

    await checkOf(backend.url)()

    const [socket] = await connected
    if (!socket.closed) await once(socket, 'close')
    t.ok(socket.closed)
  })

  t.test('concurrent callers share one backend check', async (t) => {
    const backend = await startBackend(t)
    const check = checkOf(backend.url)

    const states = await Promise.all([check(), check(), check()])

    t.equal(backend.requests.length, 1)
    for (const state of states) t.equal(state, states[0])
  })

  t.test('the result of the backend check is cached for a second', async (t) => {
    const backend = await startBackend(t)
    let now = 5_000
    const check = checkOf(backend.url, '', { now: () => now })

    t.match(await check(), { status: 'up' })
    backend.respond = (_request, response) => response.writeHead(500).end()
    now += 999
    t.match(await check(), { status: 'up' }, 'within the second')
    now += 1
    t.match(await check(), { status: 'down' }, 'after it')

    t.equal(backend.requests.length, 2)
  })
})
