import { once } from 'node:events'
import t from 'tap'
import { nextData, openSocket } from '../../helper/exact-http.js'
import { startRelay } from '../../helper/relay.js'
import { API_KEY } from '../../helper/relay-rules.js'

/** The request of `curl --http2`. */
const CURL = [
  'Host: relay',
  'User-Agent: curl/7.88.1',
  'Accept: */*',
  'Connection: Upgrade, HTTP2-Settings',
  'Upgrade: h2c',
  'HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA'
]

/** The default request of Java's HttpClient. */
const JAVA = [
  'Connection: Upgrade, HTTP2-Settings',
  'Host: relay',
  'HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA',
  'Upgrade: h2c',
  'User-Agent: Java-http-client/17.0.15'
]

/** Sends one request, one write per part, and resolves with the response. The connection stays open. */
const exchange = async (url: string, parts: readonly string[]): Promise<string> => {
  const socket = await openSocket(url)
  let reply = ''
  for (const part of parts) {
    socket.write(part)
    await new Promise(setImmediate)
  }
  while (!isWhole(reply)) reply += String((await once(socket, 'data'))[0])
  socket.destroy()
  return reply
}

const isWhole = (reply: string): boolean => {
  const [head = '', body] = reply.split('\r\n\r\n')
  return body !== undefined && body.length === Number(/content-length: (\d+)/i.exec(head)?.[1])
}

const body = JSON.stringify({ channel: 'floor:7', data: 1 })
const posted = (headers: readonly string[], rest: string): string =>
  `POST /api/publish HTTP/1.1\r\n${[...headers, `X-API-Key: ${API_KEY}`, rest].join('\r\n')}`

for (const [client, headers] of [
  ['curl --http2', CURL],
  ["Java's HttpClient", JAVA]
] as const) {
  t.test(`requests of ${client}, which offer an upgrade to h2c`, async (t) => {
    const { url } = await startRelay(t)
    const get = (path: string): string => `GET ${path} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`
    const withLength = posted(headers, `Content-Length: ${body.length}\r\n\r\n${body}`)
    const chunked = posted(
      headers,
      `Transfer-Encoding: chunked\r\n\r\n5\r\n${body.slice(0, 5)}\r\n${(body.length - 5).toString(16)}\r\n${body.slice(5)}\r\n0\r\n\r\n`
    )

    t.test(`${client} receives 200 from /health`, async (t) => {
      t.match(await exchange(url, [get('/health')]), /^HTTP\/1\.1 200 /)
    })

    for (const [kind, request] of [
      ['a Content-Length', withLength],
      ['a chunked body', chunked]
    ] as const) {
      t.test(`${client} publishes with ${kind}`, async (t) => {
        t.match(await exchange(url, [request]), /^HTTP\/1\.1 200 [\s\S]*"result":\{"epoch":/)
      })
    }

    t.test(`${client} publishes with a body that arrives byte by byte`, async (t) => {
      t.match(await exchange(url, withLength.split('')), /^HTTP\/1\.1 200 [\s\S]*"result":\{"epoch":/)
    })

    t.test(`${client} uses its connection for several requests`, async (t) => {
      const socket = await openSocket(url)
      t.teardown(() => socket.destroy())
      for (const request of [get('/health'), withLength, get('/health'), chunked]) {
        socket.write(request)
        const reply = await nextData(socket)
        t.match(reply.toString(), /^HTTP\/1\.1 200 /)
      }
    })

    t.test(`${client} receives 404 from an unknown path and 426 from the WebSocket path`, async (t) => {
      t.match(await exchange(url, [get('/unknown')]), /^HTTP\/1\.1 404 /)
      t.match(await exchange(url, [get('/connection/websocket')]), /^HTTP\/1\.1 426 /)
    })
  })
}

t.test('a WebSocket handshake on another path is served as an ordinary request', async (t) => {
  const { url } = await startRelay(t)
  const handshake =
    'Host: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n'

  t.match(await exchange(url, [`GET /health HTTP/1.1\r\n${handshake}`]), /^HTTP\/1\.1 200 /)
  t.match(await exchange(url, [`GET /unknown HTTP/1.1\r\n${handshake}`]), /^HTTP\/1\.1 404 /)
})

t.test('a WebSocket handshake with a body receives 426', async (t) => {
  const { url } = await startRelay(t)
  const request =
    'GET /connection/websocket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n{}'

  t.match(await exchange(url, [request]), /^HTTP\/1\.1 426 /)
})
