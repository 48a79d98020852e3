import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import t, { type Test } from 'tap'
import { eventually } from '../../helper/eventually.js'
import { openSocket } from '../../helper/exact-http.js'
import { browserHeaders, startGateway, type TestGateway, tokenOf } from '../../helper/gateway.js'
import { startHttpBackend } from '../../helper/scripted-backend.js'

// 16 connections: 4 for anonymous requests. 8 of them may stream a body, 2 for anonymous requests.
const CONNECTIONS = { BACKEND_CONNECTIONS: '16' }
const [ANONYMOUS, STREAMS, ANONYMOUS_STREAMS] = [4, 8, 2]

interface PendingRequest {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

interface Setup extends TestGateway {
  /** Requests at the backend, which responds to `/api/quick` only. */
  readonly pending: readonly PendingRequest[]
  inFlight(): Promise<number>
}

const setUp = async (t: Test, env: Readonly<Record<string, string>> = {}): Promise<Setup> => {
  const pending: PendingRequest[] = []
  const url = await startHttpBackend(t, (request, response) => {
    request.on('error', () => undefined)
    if (request.url?.startsWith('/api/quick')) request.resume().once('end', () => response.end('{}'))
    else pending.push({ request, response })
  })
  const gateway = await startGateway(t, {
    env: { ...CONNECTIONS, BACKEND_URL: url, BACKEND_TIMEOUT_MS: '600000', GATEWAY_AUTH_PATHS: '/api/auth/x', ...env }
  })
  return {
    ...gateway,
    pending,
    inFlight: async () => Number(/^gateway_in_flight (\d+)$/m.exec((await gateway.send('/metrics')).body)?.[1])
  }
}

const open = async (
  t: Test,
  { url }: TestGateway,
  requestLine: string,
  headers: Record<string, string>
): Promise<Socket> => {
  const socket = await openSocket(url)
  t.teardown(() => socket.destroy())
  const lines = Object.entries({ host: 'a', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`${requestLine} HTTP/1.1\r\n${lines.join('')}\r\n`)
  return socket
}

const endlessBody = (token: string | null): Record<string, string> => ({
  ...browserHeaders(token),
  'content-type': 'a/b',
  'content-length': '100000'
})

const openMany = async (t: Test, setup: Setup, count: number, requestLine: string, headers: Record<string, string>) => {
  for (let index = 0; index < count; index++) {
    const socket = await open(t, setup, requestLine, headers)
    if ('content-length' in headers) socket.write('x')
  }
  await eventually(async () => (await setup.inFlight()) === count)
}

const verified = (): Record<string, string> => browserHeaders(tokenOf('operator'))

t.test('endless anonymous bodies leave three quarters of the streaming slots to others', async (t) => {
  const setup = await setUp(t)
  await openMany(t, setup, 12, 'PUT /api/auth/x', endlessBody(null))
  await eventually(() => setup.pending.length === ANONYMOUS_STREAMS)

  const upload = await setup.send('/api/quick/upload', { method: 'POST', headers: verified(), body: '{"a":1}' })
  t.equal(upload.status, 200)
  t.equal(setup.pending.length, ANONYMOUS_STREAMS, 'the other anonymous bodies wait')
})

t.test('anonymous readers leave three quarters of the connections to others', async (t) => {
  const setup = await setUp(t)
  await openMany(t, setup, 12, 'GET /api/zones', {})
  await eventually(() => setup.pending.length === ANONYMOUS)

  const responses = await Promise.all(
    Array.from({ length: 12 }, (_, index) => setup.send(`/api/quick/${index}`, { headers: verified() }))
  )
  t.ok(responses.every(({ status }) => status === 200))
  t.equal(setup.pending.length, ANONYMOUS)
})

t.test('a forged, expired or foreign token does not make a request verified', async (t) => {
  for (const cookie of ['auth_token=not.a.token', `auth_token=${tokenOf('operator')}x`]) {
    const setup = await setUp(t)
    await openMany(t, setup, 6, 'GET /api/zones', { cookie, authorization: `Bearer ${tokenOf('operator')}` })
    await eventually(() => setup.pending.length >= ANONYMOUS)
    t.equal((await setup.send('/api/quick', { headers: verified() })).status, 200)
    t.equal(setup.pending.length, ANONYMOUS)
  }
})

t.test('the anonymous share does not apply to a signed-in user, even on a public path', async (t) => {
  const setup = await setUp(t)
  await openMany(t, setup, 12, 'PUT /api/auth/x', endlessBody(tokenOf('operator')))

  await eventually(() => setup.pending.length >= STREAMS)
  t.equal((await setup.send('/api/quick', { headers: verified() })).status, 200)
  t.equal(setup.pending.length, STREAMS)
})

t.test('BACKEND_ANONYMOUS_PERCENT sets the share', async (t) => {
  const setup = await setUp(t, { BACKEND_ANONYMOUS_PERCENT: '100' })
  await openMany(t, setup, 12, 'GET /api/zones', {})

  await eventually(() => setup.pending.length >= 12)
  t.equal(setup.pending.length, 12)
})

t.test('queued anonymous requests leave room for others, and further ones are OVERLOADED', async (t) => {
  const setup = await setUp(t, { GATEWAY_MAX_IN_FLIGHT: '32' })
  await openMany(t, setup, 8, 'GET /api/zones', {})

  const rejected = await setup.send('/api/zones')
  t.equal(rejected.code, 'OVERLOADED')
  t.equal((await setup.send('/api/quick', { headers: verified() })).status, 200)
})

t.test(
  'an anonymous request that times out in the queue is OVERLOADED and not logged as a backend error',
  async (t) => {
    const setup = await setUp(t, { BACKEND_TIMEOUT_MS: '1000' })
    for (let index = 0; index < ANONYMOUS; index++) await open(t, setup, 'GET /api/zones', {})
    await eventually(() => setup.pending.length === ANONYMOUS)
    for (const { response } of setup.pending)
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()

    const rejected = await setup.send('/api/zones')

    t.equal(rejected.code, 'OVERLOADED')
    t.equal(setup.pending.length, ANONYMOUS)
    t.same(
      setup.logs.filter(({ level }) => Number(level) > 30),
      []
    )
  }
)

t.test('signing in works while anonymous requests use up their share', async (t) => {
  const setup = await setUp(t)
  await openMany(t, setup, 12, 'GET /api/zones', {})

  const login = setup.send('/api/auth/login', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"email":"a@example.com","password":"x"}'
  })
  await eventually(() => setup.pending.some(({ request }) => request.url === '/api/auth/login'))
  for (const { response } of setup.pending) response.end('{}')
  t.equal((await login).status, 200)
})

t.test('logouts without a verified token belong to the anonymous share, and those of a user do not', async (t) => {
  const setup = await setUp(t)
  const logout = (token: string | null): Record<string, string> => ({ ...browserHeaders(token), 'content-length': '0' })
  await openMany(t, setup, 12, 'POST /api/auth/logout', logout(null))
  await eventually(() => setup.pending.length === ANONYMOUS)

  t.equal((await setup.send('/api/quick', { headers: verified() })).status, 200)
  await open(t, setup, 'POST /api/auth/logout', logout(tokenOf('operator')))
  await eventually(() => setup.pending.length === ANONYMOUS + 1)
})

t.test('a request that ends frees its part of the anonymous share', async (t) => {
  const setup = await setUp(t)
  const sockets: Socket[] = []
  for (let index = 0; index < ANONYMOUS; index++) sockets.push(await open(t, setup, 'GET /api/zones', {}))
  await eventually(() => setup.pending.length === ANONYMOUS)
  for (const socket of sockets) socket.destroy()
  await eventually(async () => (await setup.inFlight()) === 0)

  const next = await open(t, setup, 'GET /api/zones', {})
  await eventually(() => setup.pending.length === ANONYMOUS + 1)
  setup.pending.at(-1)?.response.end('{}')
  const [response] = await once(next, 'data')
  t.match(String(response), /^HTTP\/1\.1 200 /)
})
