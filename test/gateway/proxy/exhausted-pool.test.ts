import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { eventually } from '../../helper/eventually.js'
import { openSocket, sendBytes } from '../../helper/exact-http.js'
import { freePort } from '../../helper/free-port.js'
import { browserHeaders, startGateway, type TestGateway } from '../../helper/gateway.js'
import { startHttpBackend } from '../../helper/scripted-backend.js'

const LONG_TIMEOUT_MS = '600000'

interface Setup extends TestGateway {
  /** Requests that the backend has not answered, in order of arrival. */
  readonly pending: { readonly request: IncomingMessage; readonly response: ServerResponse }[]
  /** Resolves when the backend has received this many. */
  untilPending(count: number): Promise<unknown>
  /** Resolves when this many are in flight or queued. */
  inFlight(count: number): Promise<unknown>
}

const setUp = async (t: Test, env: Readonly<Record<string, string>>): Promise<Setup> => {
  const pending: Setup['pending'] = []
  const url = await startHttpBackend(t, (request, response) => {
    request.on('error', () => undefined)
    pending.push({ request, response })
  })
  const gateway = await startGateway(t, { env: { BACKEND_URL: url, BACKEND_TIMEOUT_MS: LONG_TIMEOUT_MS, ...env } })
  const counted = async (): Promise<number> => {
    const { body } = await gateway.send('/metrics')
    return Number(/^gateway_in_flight (\d+)$/m.exec(body)?.[1])
  }
  return {
    ...gateway,
    pending,
    untilPending: (count) => eventually(() => pending.length >= count),
    inFlight: (count) => eventually(async () => (await counted()) === count)
  }
}

t.test('all backend connections in use', async (t) => {
  t.test('a request waits for a free backend connection', async (t) => {
    const setup = await setUp(t, { BACKEND_CONNECTIONS: '1' })
    const first = setup.send('/api/zones/1')
    await setup.untilPending(1)
    const second = setup.send('/api/zones/2')
    await setup.inFlight(2)
    t.equal(setup.pending.length, 1, 'the backend has seen one')

    setup.pending[0]?.response.end('{"which":1}')
    await setup.untilPending(2)
    setup.pending[1]?.response.end('{"which":2}')
    t.same(JSON.parse((await first).body), { which: 1 })
    t.same(JSON.parse((await second).body), { which: 2 })
  })

  t.test('a queued request whose browser disconnects is not sent to the backend', async (t) => {
    const setup = await setUp(t, { BACKEND_CONNECTIONS: '1' })
    const first = setup.send('/api/zones/1')
    await setup.untilPending(1)
    const leaver = await openSocket(setup.url)
    leaver.write('GET /api/zones/2 HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await setup.inFlight(2)
    leaver.destroy()
    await setup.inFlight(1)

    const third = setup.send('/api/zones/3')
    await setup.inFlight(2)
    setup.pending[0]?.response.end('{}')
    await setup.untilPending(2)
    t.equal(setup.pending[1]?.request.url, '/api/zones/3')
    setup.pending[1]?.response.end('{}')
    t.equal((await first).status, 200)
    t.equal((await third).status, 200)
  })

  t.test('a request that waits in the queue for BACKEND_TIMEOUT_MS gets 504', async (t) => {
    const setup = await setUp(t, { BACKEND_CONNECTIONS: '1', BACKEND_TIMEOUT_MS: '1000' })
    // An event stream occupies its connection for longer than BACKEND_TIMEOUT_MS.
    const reader = await openSocket(setup.url)
    t.teardown(() => reader.destroy())
    reader.write('GET /api/zones/1 HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await setup.untilPending(1)
    setup.pending[0]?.response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    const rejected = await setup.send('/api/zones/2')

    t.equal(rejected.status, 504)
    t.equal(rejected.code, 'BACKEND_TIMEOUT')
    t.equal(setup.pending.length, 1, 'the backend never saw it')
  })

  t.test('endless uploads leave half of the connections to other requests', async (t) => {
    const setup = await setUp(t, { BACKEND_CONNECTIONS: '4' })
    const { cookie, 'x-csrf-token': csrf } = browserHeaders()
    for (let index = 0; index < 6; index++) {
      const sender = await openSocket(setup.url)
      sender.write('POST /api/floors/1/upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n')
      sender.write(`Cookie: ${cookie}\r\nX-CSRF-Token: ${csrf}\r\n`)
      sender.write('Content-Type: multipart/form-data; boundary=b\r\n\r\n--b')
      t.teardown(() => sender.destroy())
    }
    await setup.inFlight(6)
    const read = setup.send('/api/zones/1')
    await setup.untilPending(3)

    const reads = setup.pending.filter(({ request }) => request.method === 'GET')
    t.equal(reads.length, 1, 'the read passed the waiting uploads')
    reads[0]?.response.end('{}')
    t.equal((await read).status, 200)
  })

  t.test('the body of an upload that is rejected with OVERLOADED is not read', async (t) => {
    const setup = await setUp(t, { GATEWAY_MAX_IN_FLIGHT: '1', NODE_ENV: 'development' })
    const first = setup.send('/api/zones/1')
    await setup.untilPending(1)
    const sender = await openSocket(setup.url)
    sender.write(
      'POST /api/unknown HTTP/1.1\r\nHost: a\r\nContent-Type: a/b\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n'
    )

    const response = await text(sender)

    t.match(response, /^HTTP\/1\.1 503 /)
    t.match(response, /^connection: close\r$/im)
    const other = await openSocket(setup.url)
    other.write('GET /api/zones/2 HTTP/1.1\r\nHost: a\r\n\r\n')
    const [rejection] = await once(other, 'data')
    t.match(String(rejection), /^HTTP\/1\.1 503 /)
    t.match(
      String(rejection),
      /^connection: keep-alive\r$/im,
      'a client that sent its whole request may reuse the connection'
    )
    other.destroy()
    setup.pending[0]?.response.end('{}')
    t.equal((await first).status, 200)
  })

  t.test('all queued requests get BACKEND_UNREACHABLE if the backend is unreachable', async (t) => {
    const port = await freePort()
    const { url, send } = await startGateway(t, {
      env: { BACKEND_URL: `http://127.0.0.1:${port}`, BACKEND_CONNECTIONS: '2' }
    })

    // In one packet, so that all arrive before the first one fails.
    const message = 'GET /api/zones/1 HTTP/1.1\r\nHost: a\r\n'
    const responses = await sendBytes(url, `${`${message}\r\n`.repeat(19)}${message}Connection: close\r\n\r\n`)

    t.equal(responses.match(/^x-gateway-error: BACKEND_UNREACHABLE/gm)?.length, 20)
    t.match((await send('/metrics')).body, /^gateway_in_flight 0$/m)
  })

  t.test('each queued request has its own deadline', async (t) => {
    const setup = await setUp(t, { BACKEND_CONNECTIONS: '1', BACKEND_TIMEOUT_MS: '4000' })
    // The second has waited for most of its time when a connection is free, the third for less.
    const first = setup.send('/api/zones/1')
    await setup.untilPending(1)
    const second = setup.send('/api/zones/2')
    await setup.inFlight(2)
    await delay(3000)
    const third = setup.send('/api/zones/3')
    await setup.inFlight(3)
    for (const index of [0, 1]) {
      setup.pending[index]?.response.end('{}')
      await setup.untilPending(index + 2)
    }
    // Longer than the remaining time of the second.
    await delay(2000)
    setup.pending[2]?.response.end('{}')

    t.same([(await first).status, (await second).status, (await third).status], [200, 200, 200])
  })
})
