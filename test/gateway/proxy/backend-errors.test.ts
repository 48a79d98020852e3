import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { openSocket, sendExact } from '../../helper/exact-http.js'
import { startGateway, type TestGateway } from '../../helper/gateway.js'
import { forBothRouteKinds, jsonHeaders, ZONE } from '../../helper/route-kinds.js'
import { type RawRequest, startHttpBackend, startRawBackend } from '../../helper/scripted-backend.js'

// No connection is reused, so that no error counts as that of a closed keep-alive connection.
const OK = 'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}'

type Behaviour = (request: RawRequest) => void

const sends =
  (bytes: string): Behaviour =>
  ({ socket }) =>
    socket.write(bytes, 'latin1')

const sendsAndCloses =
  (bytes: string): Behaviour =>
  ({ socket }) =>
    socket.end(bytes, 'latin1')

const sendsAndResets =
  (bytes: string): Behaviour =>
  ({ socket }) =>
    socket.write(bytes, 'latin1', () => socket.resetAndDestroy())

/** Until the connection is closed. */
const writeForEver = (socket: Socket, bytes: string): void => {
  while (!socket.destroyed) {
    if (!socket.write(bytes)) {
      socket.once('drain', () => writeForEver(socket, bytes))
      return
    }
  }
}

const respond = (...lines: string[]): string =>
  ['HTTP/1.1 200 OK', ...lines, 'Content-Length: 2', '', '{}'].join('\r\n')
const chunks = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'

/** Fails before the response headers are forwarded. */
const UNUSABLE: readonly (readonly [title: string, behaviour: Behaviour])[] = [
  ['closes without a word', sendsAndCloses('')],
  ['resets without a word', sendsAndResets('')],
  ['closes in the middle of the status line', sendsAndCloses('HTTP/1.1 20')],
  ['closes in the middle of the headers', sendsAndCloses('HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-')],
  ['resets in the middle of the headers', sendsAndResets('HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-')],
  ['closes between the headers and the body', sendsAndCloses('HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n')],
  ['closes before the first chunk', sendsAndCloses(chunks)],
  ['sends a chunk whose length is none', sends(`${chunks}zz\r\nhello\r\n`)],
  ['sends a chunk of negative length', sends(`${chunks}-5\r\nhello\r\n`)],
  ['sends garbage', sends('\0\x01\x02\xff\xfe')],
  ['speaks another protocol', sends('220 mail.example ESMTP ready\r\n')],
  ['speaks HTTP/0.9', sends('<html>hello</html>')],
  ['speaks HTTP/9.9', sends('HTTP/9.9 200 OK\r\n\r\n')],
  ['ends its lines with a line feed only', sends('HTTP/1.1 200 OK\nContent-Length: 2\n\n{}')],
  ['responds with the status 099', sends('HTTP/1.1 099 What\r\nContent-Length: 2\r\n\r\n{}')],
  ['responds with the status 600', sends('HTTP/1.1 600 What\r\nContent-Length: 2\r\n\r\n{}')],
  ['responds with the status 999', sends('HTTP/1.1 999 What\r\nContent-Length: 2\r\n\r\n{}')],
  ['responds with the status 1000', sends('HTTP/1.1 1000 What\r\nContent-Length: 2\r\n\r\n{}')],
  ['responds with a status that is not a number', sends('HTTP/1.1 fine OK\r\nContent-Length: 2\r\n\r\n{}')],
  ['tells us to go on, unasked', sends(`HTTP/1.1 100 Continue\r\n\r\n${OK}`)],
  ['switches protocols, unasked', sends(`HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n${OK}`)],
  ['sends a header with a carriage return in it', sends(respond('X-A: a\rb'))],
  ['sends a header with a NUL in it', sends(respond('X-A: a\0b'))],
  ['sends a header with a control character in it', sends(respond('X-A: a\x01b'))],
  ['sends a header with a blank in its name', sends(respond('X A: b'))],
  ['sends a header without a name', sends(respond(': b'))],
  ['sends a header with a name in another alphabet', sends(respond('X\xe9: b'))],
  ['folds a header', sends(respond('X-A: a\r\n b'))],
  ['sends a negative length', sends('HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n{}')],
  ['sends a length in words', sends('HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\n{}')],
  ['sends two lengths', sends(respond('Content-Length: 3'))],
  ['sends its length twice', sends(respond('Content-Length: 2'))],
  ['sends a length and chunks', sends(respond('Transfer-Encoding: chunked'))],
  ['sends headers over the limit', sends(respond(`X-Big: ${'a'.repeat(70_000)}`))],
  [
    'sends a header without end',
    ({ socket }) => {
      socket.write('HTTP/1.1 200 OK\r\nX-Big: ')
      writeForEver(socket, 'a'.repeat(65_536))
    }
  ],
  [
    'sends headers without end',
    ({ socket }) => {
      socket.write('HTTP/1.1 200 OK\r\n')
      writeForEver(socket, 'X-Many: many\r\n'.repeat(4096))
    }
  ],
  [
    'announces a response that never ends',
    ({ socket }) => {
      writeForEver(socket, 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(2048).concat('\0'))
    }
  ]
]

/** Fails after a part of the response was forwarded. */
const BROKEN: readonly (readonly [title: string, behaviour: Behaviour])[] = [
  ['closes before the length that it promised', sendsAndCloses('HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhello')],
  ['resets before the length that it promised', sendsAndResets('HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhello')],
  ['closes in the middle of a chunk', sendsAndCloses(`${chunks}a\r\nhello`)],
  ['closes between two chunks', sendsAndCloses(`${chunks}5\r\nhello\r\n`)],
  ['resets between two chunks', sendsAndResets(`${chunks}5\r\nhello\r\n`)],
  ['closes before the last line', sendsAndCloses(`${chunks}5\r\nhello\r\n0\r\n`)],
  ['goes on with garbage', sends(`${chunks}5\r\nhello\r\nzz\r\n`)]
]

const message = { read: {}, write: { method: 'PUT', headers: jsonHeaders(), body: ZONE } }

forBothRouteKinds(t, 'a backend that misbehaves', async (t, routeKind) => {
  const backend = await startRawBackend(t, sends(OK))
  const { url, send, logs } = await startGateway(t, { env: { BACKEND_URL: backend.url } })

  for (const kind of ['read', 'write'] as const) {
    for (const [title, behaviour] of UNUSABLE) {
      t.test(`a ${kind} gets 502 if the backend ${title}`, async (t) => {
        backend.respond = behaviour
        const before = backend.requests.length
        logs.length = 0

        const rejected = await send(routeKind.path, message[kind])

        t.equal(rejected.status, 502)
        t.equal(rejected.code, 'BACKEND_UNREACHABLE')
        t.equal(backend.requests.length, before + 1, 'the backend receives one request')
        t.match(
          logs.filter(({ level }) => Number(level) > 30),
          [{ level: 50, msg: 'request failed', err: { message: /./ } }],
          'the cause is in the log, once'
        )
        backend.respond = sends(OK)
        t.equal((await send(routeKind.path)).status, 200, 'the next request is served')
      })
    }

    for (const [title, behaviour] of BROKEN) {
      t.test(`the response to a ${kind} is cut off if the backend ${title}`, async (t) => {
        backend.respond = behaviour
        const before = backend.requests.length
        logs.length = 0

        await t.rejects(sendExact(url, routeKind.path, message[kind]), { code: 'ECONNRESET' })

        t.equal(backend.requests.length, before + 1, 'the backend receives one request')
        t.match(
          logs.filter(({ level }) => Number(level) > 30),
          [{ level: 50, msg: 'response truncated', requestId: String, err: { message: /./ } }],
          'the cause is in the log, once'
        )
        backend.respond = sends(OK)
        t.equal((await send(routeKind.path)).status, 200, 'the next request is served')
      })
    }
  }

  t.test(
    'an incomplete response resets the connection of an HTTP/1.0 client, which reads until the end of the connection',
    async (t) => {
      backend.respond = sendsAndCloses(`${chunks}5\r\nhello\r\n`)
      const socket = await openSocket(url)
      socket.write(`GET ${routeKind.path} HTTP/1.0\r\n\r\n`)

      const [error] = await once(socket.resume(), 'error')

      t.equal(error.code, 'ECONNRESET')
    }
  )

  t.test('bytes beyond the Content-Length of the backend are not forwarded', async (t) => {
    backend.respond = sends(
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison'
    )

    t.equal((await send(routeKind.path)).body, '{}')
    backend.respond = sends(OK)
    for (const _ of [1, 2, 3]) t.equal((await send(routeKind.path)).body, '{}')
  })
})

forBothRouteKinds(t, 'a backend that cannot be reached', async (t, routeKind) => {
  t.test('a request gets 502 if the backend port is closed', async (t) => {
    const { send } = await startGateway(t, { env: { BACKEND_URL: 'http://127.0.0.1:1' } })

    t.equal((await send(routeKind.path)).code, 'BACKEND_UNREACHABLE')
    t.equal((await send(routeKind.path, message.write)).code, 'BACKEND_UNREACHABLE')
  })
})

/** Resolves when the gateway closes or resets a backend connection. */
const closed = (socket: Socket | undefined): Promise<unknown> =>
  socket === undefined || socket.destroyed ? Promise.resolve() : once(socket, 'close')

forBothRouteKinds(t, 'a backend that is slow', async (t, routeKind) => {
  // In parallel, because these tests mostly wait.
  t.jobs = 8

  const start = async (
    t: Test,
    behaviour: Behaviour,
    timeoutMs = '300'
  ): Promise<TestGateway & { backendClosed: () => Promise<unknown> }> => {
    const backend = await startRawBackend(t, behaviour)
    const gateway = await startGateway(t, { env: { BACKEND_URL: backend.url, BACKEND_TIMEOUT_MS: timeoutMs } })
    return { ...gateway, backendClosed: () => closed(backend.connections[0]) }
  }

  const SILENT: readonly (readonly [title: string, bytes: string])[] = [
    ['says nothing', ''],
    ['stops in the middle of the headers', 'HTTP/1.1 200 OK\r\nX-Begun: yes\r\n'],
    ['only says that it works on it', 'HTTP/1.1 102 Processing\r\n\r\n'],
    ['stops between the headers and the body', 'HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n']
  ]
  for (const [title, bytes] of SILENT) {
    for (const kind of ['read', 'write'] as const) {
      t.test(
        `a ${kind} gets 504 if the backend ${title}, and the backend connection is closed`,
        { buffered: true },
        async (t) => {
          const { send, backendClosed } = await start(t, sends(bytes))

          t.equal((await send(routeKind.path, message[kind])).code, 'BACKEND_TIMEOUT')
          await backendClosed()
        }
      )
    }
  }

  for (const [title, bytes] of [
    ['with a length', 'HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhello'],
    ['in chunks', `${chunks}5\r\nhello\r\n`]
  ] as const) {
    t.test(`the response is cut off if the backend stalls during a body ${title}`, { buffered: true }, async (t) => {
      // Long enough for the begin of the response to arrive while other gateways start in this process.
      const { url, backendClosed } = await start(t, sends(bytes), '2000')

      await t.rejects(sendExact(url, routeKind.path), { code: 'ECONNRESET' })
      await backendClosed()
    })
  }

  t.test('a slow response does not time out while the backend keeps sending', { buffered: true }, async (t) => {
    const url = await startHttpBackend(t, async (_request, response) => {
      for (let part = 0; part < 30; part++) {
        response.write('x')
        await delay(100)
      }
      response.end()
    })
    const { send } = await startGateway(t, { env: { BACKEND_URL: url, BACKEND_TIMEOUT_MS: '2500' } })

    t.equal((await send(routeKind.path)).body, 'x'.repeat(30))
  })
})
