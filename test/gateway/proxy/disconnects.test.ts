import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { browse, openSocket, responseOf } from '../../helper/exact-http.js'
import { startGateway, type TestGateway } from '../../helper/gateway.js'
import { forBothRouteKinds, formHeaders, jsonHeaders, ZONE } from '../../helper/route-kinds.js'
import { startHttpBackend } from '../../helper/scripted-backend.js'

interface AtBackend {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Resolves when its connection is closed. */
  readonly closed: Promise<unknown>
}

interface Setup extends TestGateway {
  /** The next request at the backend, which does not respond. */
  arrival(): Promise<AtBackend>
  /** The number of requests at the backend. */
  readonly arrived: number
  /** Log lines other than request lines. */
  unexpectedLogs(): Promise<unknown[]>
}

// Longer than any test, so that a request ends only because the browser disconnected.
const PATIENT = { BACKEND_TIMEOUT_MS: '600000' }

const setUp = async (t: Test, env: Readonly<Record<string, string>> = {}): Promise<Setup> => {
  const arrivals: AtBackend[] = []
  const waiters: ((arrival: AtBackend) => void)[] = []
  let arrived = 0
  const url = await startHttpBackend(t, (request, response) => {
    request.on('error', () => undefined)
    if (request.url === '/api/zones/well') {
      response.end('{}')
      return
    }
    arrived += 1
    const arrival = { request, response, closed: new Promise((resolve) => response.once('close', resolve)) }
    const next = waiters.shift()
    if (next) next(arrival)
    else arrivals.push(arrival)
  })
  const gateway = await startGateway(t, { env: { ...PATIENT, BACKEND_URL: url, ...env } })
  return {
    ...gateway,
    get arrived() {
      return arrived
    },
    arrival: async () => arrivals.shift() ?? new Promise((resolve) => waiters.push(resolve)),
    unexpectedLogs: async () => {
      // After the response to another request, this one has ended.
      t.equal((await gateway.send('/api/zones/well')).status, 200, 'others are served')
      return gateway.logs.filter(({ level }) => Number(level) > 30)
    }
  }
}

forBothRouteKinds(t, 'a browser that disconnects', async (t, routeKind) => {
  for (const [title, message, body] of [
    ['a read', {}, undefined],
    ['a write request', { method: 'PUT', headers: jsonHeaders() }, ZONE]
  ] as const) {
    t.test(
      `the backend request is cancelled without a warning if the browser disconnects before the response to ${title}`,
      async (t) => {
        const setup = await setUp(t)
        const browser = browse(setup.url, routeKind.path, message).end(body)
        const { response, closed } = await setup.arrival()

        browser.destroy()

        await closed
        t.equal(response.writableFinished, false)
        t.same(await setup.unexpectedLogs(), [])
      }
    )

    t.test(
      `the backend request is cancelled without a warning if the browser disconnects during the response to ${title}`,
      async (t) => {
        const setup = await setUp(t)
        const browser = browse(setup.url, routeKind.path, message).end(body)
        const { response, closed } = await setup.arrival()
        response.write('half')
        await once(await responseOf(browser), 'data')

        browser.destroy()

        await closed
        t.equal(response.writableFinished, false)
        t.same(await setup.unexpectedLogs(), [])
      }
    )
  }

  for (const [title, framing] of [
    ['with a length', { 'content-length': '1000000' }],
    ['without a length', { 'transfer-encoding': 'chunked' }]
  ] as const) {
    t.test(
      `the backend request is cancelled without a warning if the browser disconnects during an upload ${title}`,
      async (t) => {
        const setup = await setUp(t)
        const browser = browse(setup.url, routeKind.upload, {
          method: 'POST',
          headers: { ...formHeaders(), ...framing }
        })
        browser.write('the first part')
        const { request, closed } = await setup.arrival()
        await once(request, 'data')

        browser.destroy()

        await closed
        t.equal(request.complete, false, 'the backend knows that it has not all of it')
        t.same(await setup.unexpectedLogs(), [])
      }
    )

    t.test(`the backend request is cancelled if the browser half-closes during an upload ${title}`, async (t) => {
      const setup = await setUp(t)
      const browser = browse(setup.url, routeKind.upload, { method: 'POST', headers: { ...formHeaders(), ...framing } })
      browser.write('the first part')
      const { request, closed } = await setup.arrival()
      await once(request, 'data')

      browser.socket?.end()

      await closed
      t.equal(request.complete, false)
      t.same(await setup.unexpectedLogs(), [])
    })
  }

  t.test('a queued request is not sent to the backend if the browser disconnects', async (t) => {
    const setup = await setUp(t, { BACKEND_CONNECTIONS: '1' })
    const first = setup.send(routeKind.path)
    const { response } = await setup.arrival()
    const request = once(setup.gateway.app.server, 'request')
    const browser = browse(setup.url, routeKind.path).end()
    const [, queued] = await request

    browser.destroy()
    await once(queued, 'close')
    response.end('{}')

    t.equal((await first).status, 200)
    t.same(await setup.unexpectedLogs(), [])
    t.equal(setup.arrived, 1)
  })

  t.test('pipelined requests are cancelled if the browser disconnects', async (t) => {
    const setup = await setUp(t)
    const browser = await openSocket(setup.url)
    browser.write(`GET ${routeKind.path} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(3))
    const arrivals = [await setup.arrival(), await setup.arrival(), await setup.arrival()]

    browser.destroy()

    await Promise.all(arrivals.map(({ closed }) => closed))
    t.same(await setup.unexpectedLogs(), [])
  })

  t.test('a browser that disconnects does not affect requests of others', async (t) => {
    const setup = await setUp(t)
    const browser = browse(setup.url, routeKind.path).end()
    const leaving = await setup.arrival()
    const other = setup.send(routeKind.path)
    const { response } = await setup.arrival()

    browser.destroy()
    await leaving.closed
    response.end('{"still":"here"}')

    t.equal((await other).body, '{"still":"here"}')
  })

  t.test('a browser that disconnects after its response causes no warning', async (t) => {
    const setup = await setUp(t)
    const browser = browse(setup.url, routeKind.path).end()
    const { response } = await setup.arrival()
    response.end('{}')
    await once((await responseOf(browser)).resume(), 'end')

    browser.destroy()

    t.equal(response.writableFinished, true)
    t.same(await setup.unexpectedLogs(), [])
  })
})
