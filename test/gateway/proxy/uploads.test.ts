import { createHash } from 'node:crypto'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { beginning, browse, type ExactAnswer, wholeAnswer } from '../../helper/exact-http.js'
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
    let asked = 0
    const { url } = await start(t, () => {
      asked += 1
    })
    const request = upload(url, routeKind.upload, { 'content-length': String(64 * 1024 + 1) })
    request.flushHeaders()

    const answer = await wholeAnswer(await beginning(request))

    t.equal(answer.status, 413)
    t.same(answer.header('x-gateway-error'), ['BODY_TOO_LARGE'])
    t.same(answer.header('connection'), ['close'])
    t.equal(asked, 0)
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

    const answer = await wholeAnswer(await beginning(request))

    t.equal(answer.status, 413)
    t.same(answer.header('x-gateway-error'), ['BODY_TOO_LARGE'])
    t.same(answer.header('connection'), ['close'])
    await aborted
    t.equal(atBackend.complete, false)
    t.same(
      logs.filter(({ level }) => Number(level) > 30),
      [],
      'which is nothing to complain about'
    )
    request.destroy()
  })

  for (const [of, framing] of [
    ['with a length', { 'content-length': String(64 * 1024) }],
    ['without a length', { 'transfer-encoding': 'chunked' }]
  ] as const) {
    t.test(`an upload of exactly the limit is accepted, ${of}`, async (t) => {
      const { url } = await start(t, async (request, response) => response.end(await hashOf(request)))
      const request = upload(url, routeKind.upload, framing)
      const body = block.subarray(0, 64 * 1024)
      request.write(body.subarray(0, 1))
      request.end(body.subarray(1))

      const answer = await wholeAnswer(await beginning(request))

      t.equal(answer.status, 200)
      t.equal(answer.body.toString(), createHash('sha256').update(body).digest('hex'))
    })
  }
})

forBothRouteKinds(t, 'a backend that responds during an upload', async (t, routeKind) => {
  for (const status of [401, 413]) {
    for (const [of, framing] of [
      ['with a length', { 'content-length': String(20 * MIB) }],
      ['without a length', { 'transfer-encoding': 'chunked' }]
    ] as const) {
      t.test(`a response with ${status} during an upload reaches the browser, ${of}`, async (t) => {
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

        const answer = await wholeAnswer(await beginning(request))

        t.equal(answer.status, status)
        t.equal(answer.body.toString(), 'enough')
        t.same(answer.header('x-gateway-error'), [])
        t.same(answer.header('connection'), ['close'], 'what is left of the upload is no request')
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
    const answering = beginning(request).then(wholeAnswer)

    const sent = await pour(request, 20 * MIB)

    t.equal((await answering).body.toString(), 'I am listening, thank you')
    t.equal(await arrived, sent)
  })
})

forBothRouteKinds(t, 'a backend that fails during an upload', async (t, routeKind) => {
  // In parallel, because these tests mostly wait.
  t.jobs = 8

  for (const [of, framing] of [
    ['with a length', { 'content-length': String(20 * MIB) }],
    ['without a length', { 'transfer-encoding': 'chunked' }]
  ] as const) {
    const uploadTo = async (
      t: Test,
      listener: Parameters<typeof startHttpBackend>[1],
      send: (request: ClientRequest) => unknown
    ): Promise<ExactAnswer> => {
      const backendUrl = await startHttpBackend(t, listener)
      const { url } = await startGateway(t, { env: { BACKEND_URL: backendUrl, BACKEND_TIMEOUT_MS: '300' } })
      const request = upload(url, routeKind.upload, framing)
      void send(request)
      const answer = await wholeAnswer(await beginning(request))
      request.destroy()
      return answer
    }

    t.test(`an upload gets 502 if the backend closes the connection, ${of}`, { buffered: true }, async (t) => {
      // One block only: writing to a connection that the gateway has closed would be an error of its own at the client.
      const answer = await uploadTo(
        t,
        (request) => request.once('data', () => request.socket.destroy()),
        (request) => request.write(block)
      )

      t.equal(answer.status, 502)
      t.same(answer.header('x-gateway-error'), ['BACKEND_UNREACHABLE'])
      t.same(answer.header('connection'), ['close'], 'the rest is not read, so the connection is closed')
    })

    t.test(`an upload gets 504 if the backend stops reading, ${of}`, { buffered: true }, async (t) => {
      const answer = await uploadTo(
        t,
        () => undefined,
        (request) => pour(request, 20 * MIB).catch(() => undefined)
      )

      t.equal(answer.status, 504)
      t.same(answer.header('x-gateway-error'), ['BACKEND_TIMEOUT'])
      t.same(answer.header('connection'), ['close'])
    })

    t.test(`a slow upload does not time out as a backend error, ${of}`, { buffered: true }, async (t) => {
      const backendUrl = await startHttpBackend(t, async (request, response) => response.end(await hashOf(request)))
      const { url } = await startGateway(t, { env: { BACKEND_URL: backendUrl, BACKEND_TIMEOUT_MS: '100' } })
      const parts = Array.from({ length: 10 }, (_, index) => block.subarray(index, index + 1000))
      const request = upload(
        url,
        routeKind.upload,
        'content-length' in framing ? { 'content-length': '10000' } : framing
      )
      const answering = beginning(request).then(wholeAnswer)
      for (const part of parts) {
        request.write(part)
        await delay(200)
      }
      request.end()

      const answer = await answering

      t.equal(answer.status, 200)
      t.equal(answer.body.toString(), createHash('sha256').update(Buffer.concat(parts)).digest('hex'))
    })
  }
})
