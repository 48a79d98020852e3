import { once } from 'node:events'
import { t } from 'tap'
import { type BackendReachableOptions, backendReachable } from '../../../src/gateway/health.js'
import { freePort } from '../../helper/free-port.js'
import { startBackend } from '../../helper/recording-backend.js'
import { startRawBackend } from '../../helper/scripted-backend.js'

/** Enough for a machine that is busy with other things; what shall run out of time is given less. */
const PATIENCE_MS = 60_000

const checkOf = (origin: string, pathPrefix = '', options: BackendReachableOptions = {}) =>
  backendReachable({ origin, pathPrefix }, { timeoutMs: PATIENCE_MS, ...options })

t.test('the check of the backend', async (t) => {
  t.test('asks for its health below the prefix, in nobody’s name', async (t) => {
    const backend = await startBackend(t)

    const state = await checkOf(backend.url, '/v2')()

    t.match(state, { status: 'up', latencyMs: Number })
    t.match(backend.requests, [{ method: 'GET', url: '/v2/api/health', body: '' }])
    t.strictSame(Object.keys(backend.requests[0]?.headers ?? {}), ['host', 'connection'])
  })

  t.test('tells how long it took by the clock it is given', async (t) => {
    const backend = await startBackend(t)
    const times = [1_000, 1_012.4, 1_012.4]

    const state = await checkOf(backend.url, '', { now: () => times.shift() ?? 0 })()

    t.same(state, { status: 'up', latencyMs: 12 })
  })

  const ANSWERS: readonly (readonly [status: number, expected: 'up' | 'down'])[] = [
    [200, 'up'],
    [204, 'up'],
    [302, 'up'],
    [401, 'up'],
    [404, 'up'],
    [499, 'up'],
    [500, 'down'],
    [503, 'down']
  ]
  for (const [status, expected] of ANSWERS) {
    t.test(`takes a backend that answers ${status} for ${expected}`, async (t) => {
      const backend = await startBackend(t)
      backend.answer = (_request, response) => response.writeHead(status).end()

      const state = await checkOf(backend.url)()

      if (expected === 'up') t.match(state, { status: 'up' })
      else t.same(state, { status: 'down', reason: 'error' })
    })
  }

  t.test('finds one that refuses connections', async (t) => {
    t.same(await checkOf(`http://127.0.0.1:${await freePort()}`)(), { status: 'down', reason: 'refused' })
  })

  t.test('calls a connection that breaks an error', async (t) => {
    const backend = await startBackend(t)
    backend.answer = (_request, { socket }) => socket?.destroy()

    t.same(await checkOf(backend.url)(), { status: 'down', reason: 'error' })
  })

  t.test('calls an answer that is not HTTP an error', async (t) => {
    const backend = await startBackend(t)
    backend.answer = (_request, { socket }) => socket?.end('good day\r\n\r\n')

    t.same(await checkOf(backend.url)(), { status: 'down', reason: 'error' })
  })

  t.test('gives up on one that does not answer', async (t) => {
    const backend = await startBackend(t)
    backend.answer = () => {}

    t.same(await checkOf(backend.url, '', { timeoutMs: 50 })(), { status: 'down', reason: 'timeout' })
  })

  t.test('gives up on an answer that does not end', async (t) => {
    const backend = await startBackend(t)
    backend.answer = (_request, response) => response.write('{')

    t.same(await checkOf(backend.url, '', { timeoutMs: 50 })(), { status: 'down', reason: 'timeout' })
  })

  t.test('does not read a long answer to its end', async (t) => {
    const backend = await startBackend(t)
    backend.answer = (_request, response) => response.write(Buffer.alloc(1024 * 1024))
    const closed = new Promise((resolve) => {
      backend.server.once('connection', (socket) => socket.once('close', () => resolve('closed')))
    })

    t.match(await checkOf(backend.url)(), { status: 'up' })
    t.equal(await closed, 'closed')
  })

  t.test('gives up on one that takes a connection and says nothing on it', async (t) => {
    const backend = await startRawBackend(t, () => {})

    const state = await checkOf(backend.url.replace('http:', 'https:'), '', { timeoutMs: 50 })()

    t.same(state, { status: 'down', reason: 'timeout' })
  })

  t.test('leaves no connection behind', async (t) => {
    const backend = await startBackend(t)
    const connected = once(backend.server, 'connection')

    await checkOf(backend.url)()

    const [socket] = await connected
    if (!socket.closed) await once(socket, 'close')
    t.ok(socket.closed)
  })

  t.test('is made once for all who ask at the same time', async (t) => {
    const backend = await startBackend(t)
    const check = checkOf(backend.url)

    const states = await Promise.all([check(), check(), check()])

    t.equal(backend.requests.length, 1)
    for (const state of states) t.equal(state, states[0])
  })

  t.test('keeps its result for a second', async (t) => {
    const backend = await startBackend(t)
    let now = 5_000
    const check = checkOf(backend.url, '', { now: () => now })

    t.match(await check(), { status: 'up' })
    backend.answer = (_request, response) => response.writeHead(500).end()
    now += 999
    t.match(await check(), { status: 'up' }, 'within the second')
    now += 1
    t.match(await check(), { status: 'down' }, 'after it')

    t.equal(backend.requests.length, 2)
  })
})
