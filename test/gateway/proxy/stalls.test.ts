import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { eventually } from '../../helper/eventually.js'
import { browse, openSocket, responseOf } from '../../helper/exact-http.js'
import { startGateway, type TestGateway } from '../../helper/gateway.js'
import { forBothRouteKinds, formHeaders, type RouteKind } from '../../helper/route-kinds.js'
import { startHttpBackend } from '../../helper/scripted-backend.js'

const WINDOW_MS = 2000
// A byte per second is enough in these tests.
const RATE = { CLIENT_MIN_RATE: '1', CLIENT_RATE_WINDOW_MS: String(WINDOW_MS) }

interface Setup extends TestGateway {
  /** Resolves when no request is in flight. */
  idle(): Promise<void>
}

const setUp = async (
  t: Test,
  listener: (request: IncomingMessage, response: ServerResponse) => void
): Promise<Setup> => {
  const url = await startHttpBackend(t, (request, response) => {
    request.on('error', () => undefined)
    listener(request, response)
  })
  const gateway = await startGateway(t, { env: { BACKEND_URL: url, BACKEND_TIMEOUT_MS: '600000', ...RATE } })
  return {
    ...gateway,
    idle: async () => {
      await eventually(async () => /^gateway_in_flight 0$/m.test((await gateway.send('/metrics')).body))
    }
  }
}

/** More than all buffers hold. */
const pourForEver = (response: ServerResponse): void => {
  while (!response.destroyed) {
    if (!response.write(Buffer.alloc(1024 * 1024))) {
      response.once('drain', () => pourForEver(response))
      return
    }
  }
}

const upload = (routeKind: RouteKind, length: number): string => {
  const headers = Object.entries({ ...formHeaders(), host: 'a', 'content-length': length })
  return `POST ${routeKind.upload} HTTP/1.1\r\n${headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`
}

forBothRouteKinds(t, 'a stalled browser', async (t, routeKind) => {
  t.test('a browser that stalls during a response is disconnected, and its backend connection is freed', async (t) => {
    const setup = await setUp(t, (_request, response) => pourForEver(response))
    const browser = await openSocket(setup.url)
    browser.pause()
    browser.write(`GET ${routeKind.path} HTTP/1.1\r\nHost: a\r\n\r\n`)

    await once(setup.gateway.app.server, 'request')
    await setup.idle()
    browser.destroy()
  })

  t.test('a browser that stalls during a response before the end of its upload is disconnected', async (t) => {
    const setup = await setUp(t, (request, response) => {
      request.resume()
      pourForEver(response)
    })
    const browser = await openSocket(setup.url)
    browser.pause()
    browser.write(upload(routeKind, 1000))
    browser.write('x'.repeat(500))
    await once(setup.gateway.app.server, 'request')
    // Until the response has stalled.
    await delay(WINDOW_MS / 4)
    browser.write('x'.repeat(500))

    await setup.idle()
    browser.destroy()
  })

  t.test('a browser that stalls during its upload is rejected', async (t) => {
    const setup = await setUp(t, (request) => request.resume())
    const request = browse(setup.url, routeKind.upload, {
      method: 'POST',
      headers: { ...formHeaders(), 'content-length': '1000' }
    })
    request.write('x')

    const response = await responseOf(request)

    t.equal(response.statusCode, 408)
    t.equal(response.headers['x-gateway-error'], 'REQUEST_TIMEOUT')
    t.equal(response.headers.connection, 'close')
    await setup.idle()
    request.destroy()
  })
})

forBothRouteKinds(t, 'a slow browser', async (t, routeKind) => {
  t.test('a slow upload may exceed the window, even if the browser reads the response slowly', async (t) => {
    const parts = 16
    const setup = await setUp(t, (request, response) => {
      response.write(Buffer.alloc(16 * 1024 * 1024))
      request.resume().once('end', () => response.end('all of it'))
    })
    const request = browse(setup.url, routeKind.upload, {
      method: 'POST',
      headers: { ...formHeaders(), 'content-length': String(parts) }
    })
    request.write('x')
    const reply = await responseOf(request)
    await delay(WINDOW_MS / 8)
    let end = ''
    reply.on('data', (chunk: Buffer) => {
      end = chunk.subarray(-9).toString()
    })
    for (let part = 1; part < parts; part++) {
      await delay(WINDOW_MS / 8)
      request.write('x')
    }
    request.end()

    await once(reply, 'end')
    t.equal(end, 'all of it')
    t.equal(reply.complete, true)
  })
})
