import { createHash } from 'node:crypto'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { browse, type ExactResponse, readResponse, responseOf } from '../../helper/exact-http.js'
import { startGateway } from '../../helper/gateway.js'
import { block, hashOf, MIB, pour } from '../../helper/large-bodies.js'
import { forBothRouteKinds, formHeaders } from '../../helper/route-kinds.js'
import { startHttpBackend } from '../../helper/scripted-backend.js'

/** On a keep-alive connection. */
const upload = (url: string, path: string, framing: Record<string, string>): ClientRequest =>
  browse(url, path, { method: 'POST', headers: { ...formHeaders(), connection: 'keep-alive', ...framing } })

forBothRouteKinds(t, 'an upload over the limit', async (t, routeKind) => {
  const start = async (t: Test, listener: Parameters<typeof startHttpBackend>[1]) => {
    const backendUrl = await startHttpBackend(t, listener)
    return startGateway(t, { env: { BACKEND_URL: backendUrl, UPLOAD_LIMIT: '64KiB' } })
  }

  t.test('an upload with a Content-Length over the limit is rejected before the backend is called', async (t) => {
    let requestCount = 0
    const { url } = await start(t, () => {
      requestCount += 1
    })
    const request = upload(url, routeKind.upload, { 'content-length': String(64 * 1024 + 1) })
    request.flushHeaders()

    const response = await readResponse(await responseOf(request))

    t.equal(response.status, 413)
    t.same(response.header('x-gateway-error'), ['BODY_TOO_LARGE'])
    t.same(response.header('connection'), ['close'])
    t.equal(requestCount, 0)
    request.destroy()
  })

  t.test('a chunked upload is rejected when it exceeds the limit, and the backend request is cancelled', async (t) => {
    let arrived = (_request: IncomingMessage): void => undefined
    const reached = new Promise<IncomingMessage>((resolve) => {
      arrived = resolve
    })
    const { url, logs } = await start(t, (request) => {
      request.on('error', () => undefined).once('data', () => arrived(request))
    })
    const request = upload(url, routeKind.upload, { 'transfer-encoding': 'chunked' })
    request.write(Buffer.alloc(64 * 1024))
    const atBackend = await reached
    const aborted = new Promise((resolve) => atBackend.once('close', resolve))
    request.write('x')

    const response = await readResponse(await responseOf(request))

    t.equal(response.status, 413)
    t.same(response.header('x-gateway-error'), ['BODY_TOO_LARGE'])
    t.same(response.header('connection'), ['close'])
    await aborted
    t.equal(atBackend.complete, false)
    t.same(
      logs.filter(({ level }) => Number(level) > 30),
      [],
      'the gateway logs no warning'
    )
    request.destroy()
  })

  for (const [title, framing] of [
    ['with a length', { 'content-length': String(64 * 1024) }],
    ['without a length', { 'transfer-encoding': 'chunked' }]
  ] as const) {
    t.test(`an upload of exactly the limit is accepted, ${title}`, async (t) => {
      const { url } = await start(t, async (request, response) => response.end(await hashOf(request)))
      const request = upload(url, routeKind.upload, framing)
      const body = block.subarray(0, 64 * 1024)
      request.write(body.subarray(0, 1))
      request.end(body.subarray(1))

      const reply = await readResponse(await responseOf(request))

      t.equal(reply.status, 200)
      t.equal(reply.body.toString(), createHash('sha256').update(body).digest('hex'))
    })
  }
})

forBothRouteKinds(t, 'a backend that responds during an upload', async (t, routeKind) => {
  for (const status of [401, 413]) {
    for (const [title, framing] of [
      ['with a length', { 'content-length': String(20 * MIB) }],
      ['without a length', { 'transfer-encoding': 'chunked' }]
    ] as const) {
      t.test(`a response with ${status} during an upload reaches the browser, ${title}`, async (t) => {
        const backendUrl = await startHttpBackend(t, (request, response) => {
          // After the first bytes, without reading the rest.
          request.once('data', () => {
            request.pause()
            response.writeHead(status, { 'content-type': 'text/plain' }).end('enough')
          })
        })
        const { url, logs } = await startGateway(t, { env: { BACKEND_URL: backendUrl } })
        const request = upload(url, routeKind.upload, framing)
        void pour(request, 20 * MIB).catch(() => undefined)

        const reply = await readResponse(await responseOf(request))

        t.equal(reply.status, status)
        t.equal(reply.body.toString(), 'enough')
        t.same(reply.header('x-gateway-error'), [])
        t.same(reply.header('connection'), ['close'], 'the rest of the upload is not parsed as a request')
        t.same(
          logs.filter(({ level }) => Number(level) > 30),
          []
        )
        request.destroy()
      })
    }
  }

  t.test('a backend that responds during an upload and keeps reading gets all of it', async (t) => {
    let arrived: Promise<string> = Promise.resolve('')
    const backendUrl = await startHttpBackend(t, (request, response) => {
      response.write('I am listening, ')
      arrived = hashOf(request)
      void arrived.then(() => response.end('thank you'))
    })
    const { url } = await startGateway(t, { env: { BACKEND_URL: backendUrl } })
    const request = upload(url, routeKind.upload, { 'content-length': String(20 * MIB) })
    const responding = responseOf(request).then(readResponse)

    const sent = await pour(request, 20 * MIB)

    t.equal((await responding).body.toString(), 'I am listening, thank you')
    t.equal(await arrived, sent)
  })
})

forBothRouteKinds(t, 'a backend that fails during an upload', async (t, routeKind) => {
  // In parallel, because these tests mostly wait.
  t.jobs = 8

  for (const [title, framing] of [
    ['with a length', { 'content-length': String(20 * MIB) }],
    ['without a length', { 'transfer-encoding': 'chunked' }]
  ] as const) {
    const uploadTo = async (
      t: Test,
      timeoutMs: string,
      listener: Parameters<typeof startHttpBackend>[1],
      send: (request: ClientRequest) => unknown
    ): Promise<ExactResponse> => {
      const backendUrl = await startHttpBackend(t, listener)
      const { url } = await startGateway(t, { env: { BACKEND_URL: backendUrl, BACKEND_TIMEOUT_MS: timeoutMs } })
      const request = upload(url, routeKind.upload, framing)
      void send(request)
      const response = await readResponse(await responseOf(request))
      request.destroy()
      return response
    }

    t.test(`an upload gets 502 if the backend closes the connection, ${title}`, { buffered: true }, async (t) => {
      // One block only: writing to a connection that the gateway has closed would be an error of its own at the client.
      const response = await uploadTo(
        t,
        '600000',
        (request) => request.once('data', () => request.socket.destroy()),
        (request) => request.write(block)
      )

      t.equal(response.status, 502)
      t.same(response.header('x-gateway-error'), ['BACKEND_UNREACHABLE'])
      t.same(response.header('connection'), ['close'], 'the rest is not read, so the connection is closed')
    })

    t.test(`an upload gets 504 if the backend stops reading, ${title}`, { buffered: true }, async (t) => {
      const response = await uploadTo(
        t,
        '300',
        () => undefined,
        (request) => pour(request, 20 * MIB).catch(() => undefined)
      )

      t.equal(response.status, 504)
      t.same(response.header('x-gateway-error'), ['BACKEND_TIMEOUT'])
      t.same(response.header('connection'), ['close'])
    })

    t.test(`a slow upload does not time out as a backend error, ${title}`, { buffered: true }, async (t) => {
      const backendUrl = await startHttpBackend(t, async (request, response) => response.end(await hashOf(request)))
      const { url } = await startGateway(t, { env: { BACKEND_URL: backendUrl, BACKEND_TIMEOUT_MS: '1000' } })
      const parts = Array.from({ length: 4 }, (_, index) => block.subarray(index, index + 1000))
      const request = upload(
        url,
        routeKind.upload,
        'content-length' in framing ? { 'content-length': '4000' } : framing
      )
      const responding = responseOf(request).then(readResponse)
      for (const part of parts) {
        request.write(part)
        await delay(1500)
      }
      request.end()

      const reply = await responding

      t.equal(reply.status, 200)
      t.equal(reply.body.toString(), createHash('sha256').update(Buffer.concat(parts)).digest('hex'))
    })
  }
})
