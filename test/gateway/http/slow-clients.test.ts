import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import t, { type Test } from 'tap'
import { eventually } from '../../helper/eventually.js'
import { openSocket } from '../../helper/exact-http.js'
import { browserHeaders, startGateway, type TestGateway } from '../../helper/gateway.js'
import { startHttpBackend } from '../../helper/scripted-backend.js'

const WINDOW_MS = 1000
const RATE = { CLIENT_MIN_RATE: '1KiB', CLIENT_RATE_WINDOW_MS: String(WINDOW_MS) }
// More than the socket buffers of a client that does not read.
const LARGE_BYTES = 32 * 1024 * 1024

const start = async (t: Test, listener: RequestListener, env: Readonly<Record<string, string>> = {}) => {
  const url = await startHttpBackend(t, (request, response) => {
    request.on('error', () => undefined)
    listener(request, response)
  })
  return startGateway(t, {
    env: { BACKEND_URL: url, BACKEND_TIMEOUT_MS: '600000', GATEWAY_AUTH_PATHS: '/api/auth/x', ...RATE, ...env }
  })
}

const takeAll: RequestListener = (request, response) => {
  request.resume().once('end', () => response.end('{}'))
}

const head = (requestLine: string, headers: Readonly<Record<string, string | number>>): string => {
  const lines = Object.entries({ host: 'a', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${requestLine} HTTP/1.1\r\n${lines.join('')}\r\n`
}

const inFlight = async ({ send }: TestGateway): Promise<number> =>
  Number(/^gateway_in_flight (\d+)$/m.exec((await send('/metrics')).body)?.[1])

/** Writes this repeatedly until the connection is closed. */
const trickle = (socket: Socket, bytes: string, everyMs: number): void => {
  const timer = setInterval(() => {
    if (socket.writable) socket.write(bytes)
    else clearInterval(timer)
  }, everyMs)
  socket.once('close', () => clearInterval(timer))
}

/** All that is received until the connection is closed. Writing to a closed connection is not an error of the test. */
const received = async (socket: Socket): Promise<string> => {
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  await new Promise((resolve) => socket.once('close', resolve))
  return Buffer.concat(chunks).toString()
}

const WITH_LENGTH = { 'content-length': 100_000 }
const IN_CHUNKS = { 'transfer-encoding': 'chunked' }

for (const [title, requestLine, type, framing] of [
  ['JSON', 'POST /api/zones', 'application/json', WITH_LENGTH],
  ['an upload', 'POST /api/floors/7/upload', 'multipart/form-data; boundary=b', IN_CHUNKS],
  ['the catch-all', 'POST /api/unknown', 'a/b', IN_CHUNKS],
  ['a public path', 'PUT /api/auth/x', 'a/b', WITH_LENGTH]
] as const) {
  t.test(`a body for ${title} below the minimum rate is 408 REQUEST_TIMEOUT`, async (t) => {
    const gateway = await start(t, takeAll)
    const socket = await openSocket(gateway.url)
    socket.write(head(requestLine, { ...browserHeaders(), 'content-type': type, ...framing }))
    trickle(socket, framing === WITH_LENGTH ? '     ' : '5\r\n     \r\n', WINDOW_MS / 20)

    const response = await received(socket)

    t.match(response, /^HTTP\/1\.1 408 /)
    t.match(response, /^x-gateway-error: REQUEST_TIMEOUT\r$/im)
    t.match(response, /^connection: close\r$/im)
    await eventually(async () => (await inFlight(gateway)) === 0)
    t.match(
      gateway.logs.filter(({ path }) => path !== '/metrics'),
      [{ msg: 'request', status: 408 }]
    )
  })
}

t.test('a body above the minimum rate may take longer than the window', async (t) => {
  const gateway = await start(t, takeAll, { CLIENT_MIN_RATE: '100', CLIENT_RATE_WINDOW_MS: '5000' })
  const socket = await openSocket(gateway.url)
  const parts = 14
  const part = 'x'.repeat(1000)
  const length = parts * part.length
  socket.write(head('POST /api/unknown', { ...browserHeaders(), 'content-type': 'a/b', 'content-length': length }))
  for (let sent = 0; sent < parts; sent++) {
    await new Promise((resolve) => setTimeout(resolve, 500))
    socket.write(part)
  }

  const [response] = await once(socket, 'data')
  t.match(String(response), /^HTTP\/1\.1 200 /)
  socket.destroy()
})

t.test('a client is not disconnected while the backend does not read its body', async (t) => {
  let take = (): void => undefined
  const gateway = await start(t, (request, response) => {
    take = () => takeAll(request, response)
  })
  const socket = await openSocket(gateway.url)
  const body = 'x'.repeat(20 * 1024 * 1024)
  socket.write(head('POST /api/unknown', { ...browserHeaders(), 'content-type': 'a/b', 'content-length': body.length }))
  socket.write(body)
  await new Promise((resolve) => setTimeout(resolve, 3 * WINDOW_MS))
  take()

  const [reply] = await once(socket, 'data')
  t.match(String(reply), /^HTTP\/1\.1 200 /)
  socket.destroy()
})

t.test('a reader below the minimum rate is disconnected, and its backend connection is freed', async (t) => {
  const gateway = await start(t, (_request, response) => response.end(Buffer.alloc(LARGE_BYTES)))
  const socket = await openSocket(gateway.url)
  socket.pause()
  socket.write(head('GET /api/unknown', {}))
  await eventually(async () => (await inFlight(gateway)) === 1)
  const reading = setInterval(() => socket.read(10), WINDOW_MS / 20)
  t.teardown(() => clearInterval(reading))

  await eventually(async () => (await inFlight(gateway)) === 0)
  await eventually(() => gateway.logs.some(({ path, cutShort }) => path === '/api/unknown' && cutShort === true))
  socket.destroy()
})

t.test('a reader is not disconnected while the backend sends slowly', async (t) => {
  const parts = 10
  const gateway = await start(t, (_request, response) => {
    let sent = 0
    const timer = setInterval(() => {
      response.write('x')
      if (++sent === parts) {
        clearInterval(timer)
        response.end()
      }
    }, WINDOW_MS / 4)
  })

  t.equal((await gateway.send('/api/unknown')).body, 'x'.repeat(parts))
})

t.test('a response within RESPONSE_BUFFER frees its backend connection before the client has read it', async (t) => {
  const env = { RESPONSE_BUFFER: '16MiB', CLIENT_RATE_WINDOW_MS: '600000' }
  const size = 16 * 1024 * 1024
  const gateway = await start(t, (_request, response) => response.end(Buffer.alloc(size)), env)
  const socket = await openSocket(gateway.url)
  socket.pause()
  socket.write(head('GET /api/unknown', { connection: 'close' }))
  await once(gateway.gateway.app.server, 'request')
  await eventually(async () => (await inFlight(gateway)) === 0)

  let bytes = 0
  for await (const chunk of socket) bytes += chunk.length
  t.ok(bytes > size, 'the slow reader receives the whole response')
})

t.test('a client that stops reading is disconnected even if the backend connection is already free', async (t) => {
  const env = { RESPONSE_BUFFER: '16MiB' }
  const gateway = await start(t, (_request, response) => response.end(Buffer.alloc(16 * 1024 * 1024)), env)
  const socket = await openSocket(gateway.url)
  socket.pause()
  socket.write(head('GET /api/unknown', {}))

  await eventually(() => gateway.logs.some(({ path, cutShort }) => path === '/api/unknown' && cutShort === true))
  t.equal(await inFlight(gateway), 0)
  socket.destroy()
})

t.test('a response larger than RESPONSE_BUFFER occupies its backend connection until it is read', async (t) => {
  const env = { RESPONSE_BUFFER: '1KiB', CLIENT_RATE_WINDOW_MS: '600000' }
  let sent = 0
  const gateway = await start(
    t,
    (_request, response) => {
      const chunk = Buffer.alloc(1024 * 1024)
      const pour = (): void => {
        while (sent < 256 && response.write(chunk)) sent += 1
        if (sent < 256) response.once('drain', pour)
        else response.end()
        sent += 1
      }
      pour()
    },
    env
  )
  const socket = await openSocket(gateway.url)
  socket.pause()
  socket.write(head('GET /api/unknown', {}))
  await eventually(() => sent > 0)
  await new Promise((resolve) => setTimeout(resolve, WINDOW_MS))

  t.equal(await inFlight(gateway), 1)
  t.ok(sent < 256, 'the gateway stops reading from the backend')
  socket.destroy()
  await eventually(async () => (await inFlight(gateway)) === 0)
})
