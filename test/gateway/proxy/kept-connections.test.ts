import { once } from 'node:events'
import t, { type Test } from 'tap'
import { openSocket } from '../../helper/exact-http.js'
import { browserHeaders, startGateway, type TestGateway } from '../../helper/gateway.js'
import { required } from '../../helper/required.js'
import { forBothRouteKinds, jsonHeaders, ZONE } from '../../helper/route-kinds.js'
import { type RawBackend, type RawRequest, startRawBackend } from '../../helper/scripted-backend.js'

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}'

const start = async (t: Test, respond: RawBackend['respond']): Promise<TestGateway & { reached: RawBackend }> => {
  const reached = await startRawBackend(t, respond)
  return { ...(await startGateway(t, { env: { BACKEND_URL: reached.url } })), reached }
}

const served = ({ socket }: RawRequest): unknown => socket.write(OK)

const queries = ({ requests }: RawBackend): unknown[] => requests.map(({ head }) => /\?(\w+)/.exec(head)?.[1])

/** The sum of `gateway_backend_errors_total`. */
const backendErrors = async (send: TestGateway['send']): Promise<number> => {
  const { body } = await send('/metrics')
  const counts = [...body.matchAll(/^gateway_backend_errors_total\{.*\} (\d+)$/gm)].map(([, count]) => Number(count))
  return counts.reduce((sum, count) => sum + count, 0)
}

forBothRouteKinds(t, 'keep-alive connections to the backend', async (t, routeKind) => {
  t.test('a backend connection is reused', async (t) => {
    const { send, reached } = await start(t, served)

    for (const _ of [1, 2, 3]) t.equal((await send(routeKind.path)).status, 200)

    t.equal(reached.connections.length, 1)
  })

  for (const [title, shut] of [
    ['closed', ({ socket }: RawRequest) => socket.end()],
    ['reset', ({ socket }: RawRequest) => socket.resetAndDestroy()]
  ] as const) {
    /** Serves only the first request on each connection. */
    const servesOnce = (request: RawRequest): unknown =>
      request.indexOnConnection === 0 ? served(request) : shut(request)

    t.test(`a read is retried once if its reused connection is ${title}`, async (t) => {
      const { send, reached } = await start(t, servesOnce)
      await send(`${routeKind.path}?first`)

      const response = await send(`${routeKind.path}?second`)

      t.equal(response.status, 200)
      t.same(queries(reached), ['first', 'second', 'second'])
      t.equal(reached.connections.length, 2)
      t.equal(await backendErrors(send), 0)
    })

    for (const change of [
      { method: 'PUT', headers: jsonHeaders(), body: ZONE },
      { method: 'DELETE', headers: browserHeaders() }
    ]) {
      t.test(`a ${change.method} is not retried if its reused connection is ${title}`, async (t) => {
        const { send, reached } = await start(t, servesOnce)
        t.equal((await send(`${routeKind.path}?first`, change)).status, 200)

        const response = await send(`${routeKind.path}?second`, change)

        t.equal(response.code, 'BACKEND_UNREACHABLE')
        t.same(queries(reached), ['first', 'second'])
      })
    }

    t.test(`a read is not retried a second time if both connections are ${title}`, async (t) => {
      const { send, reached } = await start(t, (request) => (request.index === 0 ? served(request) : shut(request)))
      await send(`${routeKind.path}?first`)

      const response = await send(`${routeKind.path}?second`)

      t.equal(response.code, 'BACKEND_UNREACHABLE')
      t.same(queries(reached), ['first', 'second', 'second'])
      t.equal(reached.connections.length, 2, 'the second try has a new one')
      t.equal(await backendErrors(send), 1)
    })

    t.test(`a read succeeds if its connection is ${title} before the request is written`, async (t) => {
      const { url, reached } = await start(t, served)
      const browser = await openSocket(url)
      const read = (query: string): boolean =>
        browser.write(`GET ${routeKind.path}?${query} HTTP/1.1\r\nHost: a\r\n\r\n`)
      read('first')
      await once(browser, 'data')

      // In one event loop turn, so that the gateway sees the request and the closed connection together.
      read('second')
      shut(required(reached.requests[0]))

      t.match(String((await once(browser, 'data'))[0]), /^HTTP\/1\.1 200 /)
      t.same(queries(reached), ['first', 'second'])
      t.equal(reached.connections.length, 2)
      browser.destroy()
    })

    t.test(`a read is not retried if a new connection is ${title}`, async (t) => {
      const { send, reached } = await start(t, shut)

      t.equal((await send(routeKind.path)).code, 'BACKEND_UNREACHABLE')
      t.equal(reached.requests.length, 1)
    })

    t.test(`a read is not retried if its connection is ${title} during the response`, async (t) => {
      const { send, reached } = await start(t, (request) => {
        if (request.index === 0) served(request)
        else request.socket.write('HTTP/1.1 200 OK\r\nX-', () => shut(request))
      })
      await send(routeKind.path)

      t.equal((await send(routeKind.path)).code, 'BACKEND_UNREACHABLE')
      t.equal(reached.requests.length, 2)
    })
  }
})
