import { once } from 'node:events'
import type { Socket } from 'node:net'
import t, { type Test } from 'tap'
import { openSocket } from '../../helper/exact-http.js'
import { borrowGateway, browserHeaders, startGateway, type TestGateway } from '../../helper/gateway.js'
import { type RecordingBackend, startBackend } from '../../helper/recording-backend.js'

const GET = 'GET /api/zones/1 HTTP/1.1\r\nHost: a\r\n\r\n'
const GARBAGE = 'this is not HTTP\r\n\r\n'
const BROKEN_CHUNK = 'zz\r\n'

/** A backend whose responses the test releases. */
const startSlowBackend = async (
  t: Test
): Promise<RecordingBackend & { release: () => void; arrived: Promise<void> }> => {
  const backend = await startBackend(t)
  const pending: (() => void)[] = []
  let arrive = (): void => undefined
  const arrived = new Promise<void>((resolve) => {
    arrive = resolve
  })
  backend.respond = ({ url }, response) => {
    pending.push(() => response.end(JSON.stringify({ url })))
    arrive()
  }
  return Object.assign(backend, {
    arrived,
    release: () => {
      for (const respond of pending.splice(0)) respond()
    }
  })
}

const received = (socket: Socket): { text: string; closed: Promise<unknown> } => {
  const all = { text: '', closed: once(socket, 'close') }
  socket.setEncoding('latin1').on('data', (text: string) => {
    all.text += text
  })
  return all
}

/** The status lines and error codes of all responses, in order. */
const outline = (text: string): string[] => text.match(/HTTP\/1\.1 \d{3}|x-gateway-error: \S+|\{"url":"[^"]*"\}/g) ?? []

const uploadHead = (): string => {
  const headers = Object.entries({
    ...browserHeaders(),
    host: 'a',
    'content-type': 'a/b',
    'transfer-encoding': 'chunked'
  })
  return `POST /api/unknown HTTP/1.1\r\n${headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`
}

const FIRST = ['HTTP/1.1 200', '{"url":"/api/zones/1"}']
const MALFORMED = ['HTTP/1.1 400', 'x-gateway-error: MALFORMED_REQUEST']

const AFTER: readonly (readonly [title: string, bytes: string, response: readonly string[]])[] = [
  ['invalid bytes', GARBAGE, MALFORMED],
  ['a body that is no body', `${uploadHead()}${BROKEN_CHUNK}`, MALFORMED],
  [
    'headers that are too large',
    `GET /api/zones/2 HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
    ['HTTP/1.1 431', 'x-gateway-error: HEADERS_TOO_LARGE']
  ],
  [
    'a CONNECT',
    'CONNECT other:443 HTTP/1.1\r\nHost: other:443\r\n\r\n',
    ['HTTP/1.1 405', 'x-gateway-error: METHOD_NOT_ALLOWED']
  ]
]
for (const [title, bytes, response] of AFTER) {
  for (const [delivery, pieces] of [
    ['in the same packet', [`${GET}${bytes}`]],
    ['in a later packet', [GET, bytes]]
  ] as const) {
    t.test(`a request gets its response before ${title} that follow it are rejected, ${delivery}`, async (t) => {
      const backend = await startSlowBackend(t)
      const { url }: TestGateway = await startGateway(t, { backend })
      const socket = await openSocket(url)
      const all = received(socket)

      socket.write(pieces[0], 'latin1')
      await backend.arrived
      if (pieces[1] !== undefined) socket.write(pieces[1], 'latin1')
      // More invalid bytes while the request is at the backend.
      socket.write(GARBAGE)
      await new Promise((resolve) => setTimeout(resolve, 100))
      t.equal(all.text, '', 'nothing is sent before the response')
      backend.release()
      await all.closed

      t.same(outline(all.text), [...FIRST, ...response])
    })
  }
}

t.test('a request with a body gets its response before invalid bytes that follow it are rejected', async (t) => {
  for (const [path, type] of [
    ['/api/zones', 'application/json'],
    ['/api/unknown', 'a/b']
  ]) {
    const backend = await startSlowBackend(t)
    const { url } = await startGateway(t, { backend })
    const socket = await openSocket(url)
    const all = received(socket)
    const body = '{"name":"Lobby"}'
    const headers = Object.entries({
      ...browserHeaders(),
      host: 'a',
      'content-type': type,
      'content-length': body.length
    })
    const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')

    socket.write(`POST ${path} HTTP/1.1\r\n${lines}\r\n${body}`)
    await backend.arrived
    socket.write(GARBAGE)
    await new Promise((resolve) => setTimeout(resolve, 100))
    backend.release()
    await all.closed

    t.same(outline(all.text), ['HTTP/1.1 200', `{"url":"${path}"}`, ...MALFORMED])
  }
})

t.test('several requests get their responses before invalid bytes that follow them are rejected', async (t) => {
  const backend = await startBackend(t)
  backend.respond = ({ url }, response) => response.end(JSON.stringify({ url }))
  const { url } = await startGateway(t, { backend })
  const socket = await openSocket(url)
  const all = received(socket)

  socket.write(`${GET.repeat(5)}${GARBAGE}`)
  await all.closed

  t.same(outline(all.text), [...Array.from({ length: 5 }, () => FIRST).flat(), ...MALFORMED])
})

t.test('a response that has begun is not cut off by invalid bytes that follow its request', async (t) => {
  const backend = await startBackend(t)
  let finish = (): void => undefined
  backend.respond = (_request, response) => {
    response.write('{"first":"half",')
    finish = () => response.end('"second":"half"}')
  }
  const { url } = await startGateway(t, { backend })
  const socket = await openSocket(url)
  const all = received(socket)
  socket.write(GET)
  await once(socket, 'data')

  socket.write(GARBAGE)
  await new Promise((resolve) => setTimeout(resolve, 100))
  finish()
  await all.closed

  t.match(all.text, '"second":"half"}')
  t.same(outline(all.text), ['HTTP/1.1 200', ...MALFORMED])
})

t.test('invalid bytes in a body are rejected at once, even if the body is streamed to the backend', async (t) => {
  const { url } = await startGateway(t)
  const socket = await openSocket(url)
  const all = received(socket)

  socket.write(`${uploadHead()}5\r\nhello\r\n${BROKEN_CHUNK}`)
  await all.closed

  t.same(outline(all.text), MALFORMED)
})

t.test('invalid bytes of a client that has disconnected affect no other connection', async (t) => {
  const backend = await startSlowBackend(t)
  const { url, send } = await startGateway(t, { backend })
  const socket = await openSocket(url)
  socket.write(`${GET}${GARBAGE}`)
  await backend.arrived
  socket.resetAndDestroy()
  backend.release()

  backend.respond = (_request, response) => response.end('{}')
  t.equal((await send('/api/zones')).status, 200)
})

const POST_BODY = '{"name":"Lobby"}'

const post = (headers: Readonly<Record<string, string>> = {}, path = '/api/zones', version = '1.1'): string => {
  const all = { host: 'a', ...browserHeaders(), 'content-type': 'application/json', ...headers }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `POST ${path} HTTP/${version}\r\n${lines.join('')}\r\n`
}

const POST = `${post({ 'content-length': String(POST_BODY.length) })}${POST_BODY}`
const CHUNKED_BODY = `${POST_BODY.length.toString(16)}\r\n${POST_BODY}\r\n0\r\n\r\n`
const TOO_MANY_LINES = `GET /api/zones HTTP/1.1\r\nhost: a\r\n${'x: y\r\n'.repeat(150)}\r\n`

/** Requests whose response closes the connection. */
const CLOSING: readonly (readonly [title: string, request: string, status: number])[] = [
  ['an unknown expectation', post({ expect: 'miracles' }), 417],
  ['an unknown expectation with a body', post({ expect: 'x', 'content-length': '2' }).concat('{}'), 417],
  [
    'a rejected Expect: 100-continue',
    post({ expect: '100-continue', 'content-length': '2', cookie: '' }).concat('{}'),
    403
  ],
  ['too many header lines', TOO_MANY_LINES, 431],
  ['a malformed path', 'GET /api/%zz HTTP/1.1\r\nhost: a\r\n\r\n', 400],
  ['a malformed body', post({ 'content-length': '2' }).concat('{]'), 400],
  ['a chunked HTTP/1.0 body', post({ 'transfer-encoding': 'chunked' }, '/api/zones', '1.0').concat(CHUNKED_BODY), 400],
  [
    'a chunked HTTP/1.0 body on a connection that stays open',
    post({ 'transfer-encoding': 'chunked', connection: 'keep-alive' }, '/api/zones', '1.0').concat(CHUNKED_BODY),
    400
  ],
  ['Connection: close', 'GET /nowhere HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n', 404]
]
for (const [title, request, status] of CLOSING) {
  t.test(`a request behind ${title} is neither executed nor answered`, async (t) => {
    const { url, backend, send } = await borrowGateway(t)
    // The gateway has a connection to the backend, so that it would forward a request at once.
    await send('/api/zones')
    for (const pieces of [[`${request}${POST}${POST}`], [request, `${POST}${POST}`]]) {
      const socket = await openSocket(url)
      const all = received(socket)
      for (const piece of pieces) socket.write(piece)
      await all.closed
      t.same(all.text.match(/HTTP\/1\.1 \d{3}/g), [`HTTP/1.1 ${status}`])
      t.match(all.text, /^connection: close\r$/im)
    }
    t.equal(backend.requests.length, 1)
  })
}

t.test('a request behind a slow one whose response closes the connection is not executed', async (t) => {
  const backend = await startSlowBackend(t)
  const { url } = await startGateway(t, { backend })
  const socket = await openSocket(url)
  const all = received(socket)
  socket.write(`${GET.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n')}${POST}`)
  await backend.arrived
  backend.release()
  await all.closed
  t.same(outline(all.text), FIRST)
  t.equal(backend.requests.length, 1)
})

t.test('a pipelined request is sent to the backend after the response to the previous one', async (t) => {
  const { url, backend } = await startGateway(t)
  const open = new Set<unknown>()
  let most = 0
  backend.respond = (request, response) => {
    open.add(request)
    most = Math.max(most, open.size)
    setImmediate(() => {
      open.delete(request)
      response.end(JSON.stringify({ url: request.url }))
    })
  }
  const socket = await openSocket(url)
  const all = received(socket)
  socket.write(`${POST.repeat(20)}${GET.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n')}`)
  await all.closed
  t.equal(outline(all.text).filter((line) => line === 'HTTP/1.1 200').length, 21)
  t.equal(backend.requests.length, 21)
  t.equal(most, 1)
})

t.test('a connection is closed after a hundred pipelined requests', async (t) => {
  const backend = await startSlowBackend(t)
  const { url } = await startGateway(t, { backend })
  const socket = await openSocket(url)
  const all = received(socket)
  socket.write(`${GET}${'GET /api/health HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(150)}`)
  await backend.arrived
  backend.release()
  await all.closed
  t.equal(outline(all.text).filter((line) => line === 'HTTP/1.1 200').length, 100)
  t.match(all.text.slice(all.text.lastIndexOf('HTTP/1.1')), /^connection: close\r$/im)
})

t.test('of pipelined requests that arrive during a shutdown, only the answered one is executed', async (t) => {
  const { url, backend, gateway } = await startGateway(t)
  const socket = await openSocket(url)
  const all = received(socket)
  gateway.announceShutdown()
  socket.write(POST.repeat(3))
  await all.closed
  t.equal(outline(all.text).filter((line) => line === 'HTTP/1.1 200').length, 1)
  t.match(all.text, /^connection: close\r$/im)
  t.equal(backend.requests.length, 1)
})
