import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import t, { type Test } from 'tap'
import { eventually } from '../../helper/eventually.js'
import { openSocket } from '../../helper/exact-http.js'
import { browserHeaders, startGateway, type TestGatewayOptions, tokenOf } from '../../helper/gateway.js'

interface RawConnection {
  readonly socket: Socket
  /** Resolves when this has been received. */
  receives(text: string): Promise<void>
  readonly closed: Promise<unknown>
  readonly text: string
}

const openConnection = async (t: Test, url: string): Promise<RawConnection> => {
  const socket = await openSocket(url)
  t.teardown(() => socket.destroy())
  const closed = once(socket, 'close')
  let text = ''
  socket.setEncoding('latin1').on('data', (more: string) => {
    text += more
  })
  return {
    socket,
    closed,
    get text() {
      return text
    },
    async receives(wanted) {
      while (!text.includes(wanted)) await once(socket, 'data')
    }
  }
}

const head = (method: string, path: string, headers: Record<string, string>, version = '1.1'): string =>
  `${method} ${path} HTTP/${version}\r\n${Object.entries({ host: 'a', expect: '100-continue', ...headers })
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n`

const BODY = '{"name":"Lobby"}'
const json = (token?: string | null): Record<string, string> => ({
  ...browserHeaders(token),
  'content-type': 'application/json',
  'content-length': String(BODY.length)
})
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n'

const REJECTED: readonly (readonly [code: string, status: number, request: string, env?: TestGatewayOptions['env']])[] =
  [
    ['CSRF_MISMATCH', 403, head('POST', '/api/zones', { ...json(), 'x-csrf-token': 'other' })],
    ['ORIGIN_REFUSED', 403, head('POST', '/api/zones', { ...json(), origin: 'https://evil.example' })],
    ['UNAUTHENTICATED', 401, head('POST', '/api/zones', json(null))],
    ['FORBIDDEN', 403, head('POST', '/api/admin/x', json(tokenOf('operator')))],
    ['AMBIGUOUS_PATH', 400, head('POST', '/api//zones', json())],
    ['AMBIGUOUS_PATH', 400, head('POST', '/api/%zz', json())],
    ['METHOD_NOT_ALLOWED', 405, head('DELETE', '/api/zones', json())],
    ['UNSUPPORTED_MEDIA_TYPE', 415, head('POST', '/api/zones', { ...json(), 'content-type': 'text/plain' })],
    ['BODY_TOO_LARGE', 413, head('POST', '/api/zones', { ...json(), 'content-length': '2000000' })],
    [
      'BODY_TOO_LARGE',
      413,
      head('POST', '/api/unknown', { ...json(), 'content-length': '2000' }),
      { UPLOAD_LIMIT: '1KiB' }
    ],
    ['NOT_FOUND', 404, head('GET', '/nowhere', json())]
  ]
for (const [code, status, request, env = {}] of REJECTED) {
  t.test(
    `a request with Expect: 100-continue that is rejected with ${status} ${code} gets no 100 Continue`,
    async (t) => {
      const { url, backend } = await startGateway(t, { env })
      const connection = await openConnection(t, url)

      connection.socket.write(request)
      await connection.closed

      t.match(connection.text, new RegExp(`^HTTP/1\\.1 ${status} `))
      t.match(connection.text, `x-gateway-error: ${code}`)
      t.match(connection.text, /^connection: close\r$/im)
      t.notMatch(connection.text, '100 Continue')
      t.same(backend.requests, [])
    }
  )
}

for (const [target, path, type] of [
  ['a typed route', '/api/zones', 'application/json'],
  ['the catch-all', '/api/unknown', 'application/json'],
  ['an upload', '/api/floors/7/upload', 'multipart/form-data; boundary=b']
] as const) {
  t.test(`a request with Expect: 100-continue to ${target} gets 100 Continue and is served`, async (t) => {
    const { url, backend } = await startGateway(t)
    const connection = await openConnection(t, url)

    connection.socket.write(head('POST', path, { ...json(), 'content-type': type }))
    await connection.receives(CONTINUE)
    t.equal(connection.text, CONTINUE)
    connection.socket.write(BODY)
    await connection.receives('{"success":true}')

    t.match(connection.text, /\r\n\r\nHTTP\/1\.1 200 /)
    t.match(connection.text, /^connection: keep-alive\r$/im)
    t.equal(backend.requests[0]?.body, BODY)
    t.equal(backend.requests[0]?.headers.expect, undefined)
    connection.socket.write('GET /nowhere HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
    await connection.closed
    t.match(connection.text, /HTTP\/1\.1 404 /, 'the connection serves the next request')
  })
}

t.test('a chunked body after 100 Continue arrives complete', async (t) => {
  const { url, backend } = await startGateway(t)
  const connection = await openConnection(t, url)
  const { 'content-length': _length, ...headers } = json()

  connection.socket.write(head('POST', '/api/unknown', { ...headers, 'transfer-encoding': 'chunked' }))
  await connection.receives(CONTINUE)
  const part = 'x'.repeat(50_000)
  for (let index = 0; index < 20; index++) connection.socket.write(`${part.length.toString(16)}\r\n${part}\r\n`)
  connection.socket.write('0\r\n\r\n')
  await connection.receives('{"success":true}')

  t.equal(backend.requests[0]?.body, part.repeat(20))
})

t.test('no 100 Continue is sent while no backend connection is free', async (t) => {
  const { url, backend, send } = await startGateway(t, { env: { BACKEND_CONNECTIONS: '1' } })
  const respond = backend.respond
  const pending = new Promise<ServerResponse>((resolve) => {
    backend.respond = (_request, response) => resolve(response)
  })
  const first = send('/api/zones/1')
  const response = await pending
  backend.respond = respond
  const connection = await openConnection(t, url)

  connection.socket.write(head('POST', '/api/unknown', json()))
  await eventually(async () => /^gateway_in_flight 2$/m.test((await send('/metrics')).body))
  t.equal(connection.text, '')
  response.end('{}')
  await connection.receives(CONTINUE)
  connection.socket.write(BODY)
  await connection.receives('{"success":true}')

  t.equal((await first).status, 200)
})

for (const expectation of ['miracles', '100-continue, miracles', '100-continues', 'x-100-continue']) {
  t.test(`the expectation "${expectation}" is 417 EXPECTATION_FAILED`, async (t) => {
    const { url, backend } = await startGateway(t)
    const connection = await openConnection(t, url)

    connection.socket.write(head('POST', '/api/zones', { ...json(), expect: expectation }))
    await connection.closed

    t.match(connection.text, /^HTTP\/1\.1 417 /)
    t.match(connection.text, 'x-gateway-error: EXPECTATION_FAILED')
    t.match(connection.text, 'x-content-type-options: nosniff')
    t.same(backend.requests, [])
  })
}

t.test('an HTTP/1.0 request with Expect: 100-continue is served without it', async (t) => {
  const { url, backend } = await startGateway(t)
  const connection = await openConnection(t, url)

  connection.socket.write(`${head('POST', '/api/zones', json(), '1.0')}${BODY}`)
  await connection.closed

  t.match(connection.text, /^HTTP\/1\.1 200 /)
  t.equal(backend.requests[0]?.body, BODY)
})

t.test('a request with Expect: 100-continue and no body is served without it', async (t) => {
  const { url } = await startGateway(t)
  const connection = await openConnection(t, url)

  connection.socket.write(head('GET', '/api/zones', {}))
  await connection.receives('{"success":true}')

  t.match(connection.text, /^HTTP\/1\.1 200 /)
})
