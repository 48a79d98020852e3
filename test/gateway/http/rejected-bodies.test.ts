import { once } from 'node:events'
import type { Socket } from 'node:net'
import t from 'tap'
import { setCookie } from '../../../src/gateway/session/cookies.js'
import { eventually } from '../../helper/eventually.js'
import { openSocket, sendBytes } from '../../helper/exact-http.js'
import { browserHeaders, startGateway } from '../../helper/gateway.js'
import { startHttpBackend } from '../../helper/scripted-backend.js'

const LIMIT = 1024 * 1024

/** Responds to one path only, before it has read the body. */
const backendUrl = await startHttpBackend(t, (request, response) => {
  request.on('error', () => undefined).resume()
  if (request.url === '/api/early') response.writeHead(422).end('{"early":true}')
})
const { url, gateway } = await startGateway(t, {
  env: {
    BACKEND_URL: backendUrl,
    BODY_LIMIT: '64KiB',
    UPLOAD_LIMIT: '1MiB',
    CLIENT_RATE_WINDOW_MS: '2000'
  },
  extend: (app) =>
    void app.route({
      method: ['POST', 'HEAD'],
      url: '/with-cookie',
      onRequest: async (_request, reply) => {
        setCookie(reply, 'a', '', {})
        return reply.code(403).header('cache-control', 'public').send('rejected')
      },
      handler: async () => undefined
    })
})

const head = (path: string, headers: Readonly<Record<string, string>>, method = 'POST'): string => {
  const lines = Object.entries({ host: 'a', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`
}

/** Goes on sending a body after the response has arrived, as reverse proxies do. Rejects if the connection is closed. */
const sendAll = async (text: string, body: Buffer): Promise<string> => {
  const socket = await openSocket(url)
  let received = ''
  socket.setEncoding('latin1').on('data', (more: string) => {
    received += more
  })
  const write = (bytes: string | Buffer): Promise<void> =>
    new Promise((resolve, reject) => socket.write(bytes, (error) => (error ? reject(error) : resolve())))
  await write(text)
  await write(body.subarray(0, -LIMIT / 2))
  await eventually(() => received.includes('\r\n\r\n'))
  for (let rest = body.subarray(-LIMIT / 2); rest.length > 0; rest = rest.subarray(BLOCK)) {
    await write(rest.subarray(0, BLOCK))
  }
  socket.destroy()
  return received
}

const BLOCK = 64 * 1024

const json = { ...browserHeaders(), 'content-type': 'application/json' }
const REJECTED: readonly (readonly [code: string, path: string, headers: Readonly<Record<string, string>>])[] = [
  ['BODY_TOO_LARGE', '/api/zones', json],
  ['BODY_TOO_LARGE', '/api/unknown', json],
  ['BODY_TOO_LARGE', '/api/floors/7/upload', { ...json, 'content-type': 'multipart/form-data; boundary=b' }],
  ['UNAUTHENTICATED', '/api/zones', { ...json, cookie: 'csrf_token=t0ken' }],
  ['CSRF_MISMATCH', '/api/zones', { ...json, cookie: '' }],
  ['UNSUPPORTED_MEDIA_TYPE', '/api/zones', { ...json, 'content-type': 'text/plain' }],
  ['NOT_FOUND', '/nowhere', {}],
  ['AMBIGUOUS_PATH', '/api//zones', {}]
]
const BODY = Buffer.alloc(1.8 * LIMIT, 'x')
const FRAMINGS: readonly (readonly [title: string, framing: Readonly<Record<string, string>>, body: Buffer])[] = [
  ['a declared', { 'content-length': String(BODY.length) }, BODY],
  [
    'a chunked',
    { 'transfer-encoding': 'chunked' },
    Buffer.concat([Buffer.from(`${BODY.length.toString(16)}\r\n`), BODY, Buffer.from('\r\n0\r\n\r\n')])
  ],
  ['the last', { 'content-length': String(BODY.length), connection: 'close' }, BODY]
]
for (const [title, framing, body] of FRAMINGS) {
  t.test(
    `a client that goes on sending ${title} body is not interrupted by the response that rejects it`,
    async (t) => {
      for (const [code, path, headers] of REJECTED) {
        const response = await sendAll(head(path, { ...headers, ...framing }), body)
        t.match(response, `x-gateway-error: ${code}`, `${code} ${path}`)
      }
    }
  )
}

t.test('a response is sent before the rest of the body has arrived, and the connection stays open', async () => {
  const socket = await openSocket(url)
  let text = ''
  socket.setEncoding('latin1').on('data', (more: string) => {
    text += more
  })
  socket.write(head('/nowhere', { 'content-length': '10' }))
  await eventually(() => text.includes('NOT_FOUND'))
  socket.write('0123456789')
  socket.write(head('/api/health', {}, 'GET'))
  await eventually(() => text.includes('"status":"ok"'))
  socket.destroy()
})

t.test('a response that clears a cookie before the body has arrived is not cacheable and complete', async (t) => {
  for (const [method, content] of [
    ['POST', 'rejected'],
    ['HEAD', '']
  ] as const) {
    const socket = await openSocket(url)
    let text = ''
    socket.setEncoding('latin1').on('data', (more: string) => {
      text += more
    })
    socket.write(head('/with-cookie', { 'content-length': '10' }, method))
    await eventually(() => text.endsWith(`\r\n\r\n${content}`))
    t.match(text, /^HTTP\/1\.1 403 /)
    t.match(text, 'content-length: 8')
    t.match(text, 'set-cookie: a=')
    t.same(text.match(/^cache-control: .*$/gim), ['cache-control: no-store'])
    text = ''
    socket.write(`0123456789${head('/api/health', {}, 'GET')}`)
    await eventually(() => text.includes('"status":"ok"'))
    t.match(text, /^HTTP\/1\.1 200 /, 'nothing is sent between the responses')
    socket.destroy()
  }
})

const MALFORMED_BODIES: readonly (readonly [
  code: string,
  path: string,
  headers: Record<string, string>,
  body: string
])[] = [
  ...['identity', 'gzip', 'xchunked', 'chunked, gzip', 'chunked, identity'].map(
    (coding) => ['MALFORMED_REQUEST', '/api/zones', { ...json, 'transfer-encoding': coding }, '{}'] as const
  ),
  ['MALFORMED_REQUEST', '/api/zones', { ...json, 'transfer-encoding': 'chunked' }, 'zz\r\n{}\r\n'],
  ...REJECTED.filter(([code]) => code !== 'BODY_TOO_LARGE').map(
    ([code, path, headers]) => [code, path, { ...headers, 'transfer-encoding': 'chunked' }, 'zz\r\nx\r\n'] as const
  ),
  ['NOT_FOUND', '/nowhere', { 'transfer-encoding': 'chunked' }, '2\r\nxx\r\nzz']
]

t.test('a malformed body in the packet of its headers is answered before the connection closes', async (t) => {
  for (const [code, path, headers, body] of MALFORMED_BODIES) {
    const title = `${headers['transfer-encoding']} ${path} ${code}`
    const response = await sendBytes(url, head(path, headers) + body)
    t.match(response, new RegExp(`^HTTP/1\\.1 4.*x-gateway-error: ${code}\r\n.*"requestId":`, 's'), title)
    t.equal(response.match(/^HTTP\/1\.1 /gm)?.length, 1, title)
  }
})

t.test('a client whose upload the backend rejects early is not interrupted', async (t) => {
  const upload = Buffer.alloc(LIMIT - 1)
  const framing = { 'content-length': String(upload.length) }
  const response = await sendAll(head('/api/early', { ...browserHeaders(), ...framing }), upload)
  t.match(response, /^HTTP\/1\.1 422 /)
})

t.test('less than five times the largest permitted body is read of an endless one', async (t) => {
  const sockets: Socket[] = []
  gateway.app.server.on('connection', (socket: Socket) => sockets.push(socket))
  const endless = { ...json, 'content-length': String(1e10) }
  // HTTP/1.0 has no expectations, so that its clients send the body at once.
  const keepAlive = { ...endless, cookie: '', connection: 'keep-alive', expect: '100-continue' }
  for (const text of [
    head('/api/zones', endless),
    head('/api/zones', { ...endless, cookie: '' }),
    head('/api/zones', keepAlive).replace('HTTP/1.1', 'HTTP/1.0')
  ]) {
    const socket = await openSocket(url)
    let received = ''
    socket.setEncoding('latin1').on('data', (more: string) => {
      received += more
    })
    // Writing to the closed connection is an error.
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.write(text)
    const block = Buffer.alloc(LIMIT / 4)
    const send = (): void => {
      while (socket.writable && socket.write(block));
      if (socket.writable) socket.once('drain', send)
    }
    send()
    await closed
    t.match(received, /^HTTP\/1\.1 4/)
    const read = sockets.at(-1)?.bytesRead ?? Number.POSITIVE_INFINITY
    // The gateway reads up to twice the limit, and Node.js up to 32 chunks of 64 KiB more in the turn that exceeds it.
    t.ok(read < 5 * LIMIT, `${read} bytes`)
  }
})

t.test('the rest of a body is read for at most CLIENT_RATE_WINDOW_MS', async (t) => {
  const socket = await openSocket(url)
  const closed = once(socket.resume(), 'close')
  socket.write(head('/nowhere', { 'content-length': String(1e9) }))
  const timer = setInterval(() => socket.write('x'.repeat(1000)), 50)
  t.teardown(() => clearInterval(timer))
  await closed
})
