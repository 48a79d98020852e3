import { once } from 'node:events'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { ACTING_HEADERS } from '../../../src/gateway/proxy/response-headers.js'
import { openSocket, sendBytes, sendExact } from '../../helper/exact-http.js'
import { startGateway } from '../../helper/gateway.js'
import { forBothRouteKinds, jsonHeaders, ZONE } from '../../helper/route-kinds.js'
import { type RawBackend, startRawBackend } from '../../helper/scripted-backend.js'

// Declared routes and the catch-all must return the same response.

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}'

const startBackend = (t: Parameters<typeof startRawBackend>[0], response: string = OK): Promise<RawBackend> =>
  startRawBackend(t, ({ socket }) => socket.write(response, 'latin1'))

forBothRouteKinds(t, 'forwarded responses', async (t, routeKind) => {
  const backend = await startBackend(t)
  const { url, logs } = await startGateway(t, { env: { BACKEND_URL: backend.url } })

  /** The response to a read or a write request if the backend responds with this. */
  const responseTo = (bytes: string | Buffer, method: 'GET' | 'PUT' = 'GET') => {
    backend.respond = ({ socket }) => socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
    return sendExact(url, routeKind.path, { method, ...(method === 'PUT' && { headers: jsonHeaders(), body: ZONE }) })
  }
  const withHeaders = (lines: string) => responseTo(`HTTP/1.1 200 OK\r\n${lines}\r\nContent-Length: 2\r\n\r\n{}`)

  const BODY = Buffer.from([0, 255, 254, 13, 10, 13, 10, 128, 0x7b, 0x7d])
  for (const status of [
    200, 201, 202, 203, 300, 301, 302, 303, 307, 308, 400, 401, 403, 404, 405, 409, 410, 418, 422, 429, 451, 500, 501,
    502, 503, 504, 599
  ]) {
    for (const method of ['GET', 'PUT'] as const) {
      t.test(`the browser gets status ${status} and the unchanged body of a ${method}`, async (t) => {
        const before = backend.requests.length
        const response = await responseTo(
          `HTTP/1.1 ${status} Any\r\nContent-Type: a/b\r\nContent-Length: 10\r\n\r\n${BODY.toString('latin1')}`,
          method
        )

        t.equal(response.status, status)
        t.same(response.body, BODY)
        t.same(response.header('content-type'), ['a/b'])
        t.same(response.header('content-length'), ['10'])
        t.same(response.header('x-gateway-error'), [])
        t.equal(backend.requests.length, before + 1, 'the backend receives one request')
      })
    }
  }

  const FORWARDED_HEADERS: readonly (readonly [name: string, ...values: string[]])[] = [
    ['content-type', 'application/json;  charset="UTF-8"'],
    ['content-type', 'text/plain; charset=iso-8859-1'],
    ['content-disposition', 'attachment; filename="na\xc3\xafve.csv"'],
    ['content-disposition', 'attachment; filename="na\xefve.csv"; filename*=UTF-8\'\'na%C3%AFve.csv'],
    ['content-language', 'de'],
    ['etag', 'W/"abc"'],
    ['last-modified', 'Mon, 01 Jan 2024 00:00:00 GMT'],
    ['expires', '0'],
    ['age', '12'],
    ['vary', 'Accept', 'Origin'],
    ['cache-control', 'private, max-age=60'],
    ['cache-control', 'no-cache', 'must-revalidate'],
    ['accept-ranges', 'bytes'],
    ['retry-after', '120'],
    ['allow', 'GET, PUT'],
    ['link', '</a>; rel="next"', '</b>; rel="last"'],
    ['www-authenticate', 'Basic realm="a, b"', 'Bearer'],
    ['x-ratelimit-remaining', '7'],
    ['x-mine', 'na\xefve \xc3\xa9', '']
  ]
  for (const [name, ...values] of FORWARDED_HEADERS) {
    t.test(`the response header ${name} is forwarded unchanged: ${JSON.stringify(values)}`, async (t) => {
      const response = await withHeaders(values.map((value) => `${name}: ${value}`).join('\r\n'))

      t.same(response.header(name), values)
      t.equal(response.body.toString(), '{}')
    })
  }

  const DROPPED = [
    'Keep-Alive: timeout=77',
    'Proxy-Authenticate: from-backend',
    'Proxy-Connection: from-backend',
    'TE: from-backend',
    'Trailer: from-backend',
    'Upgrade: from-backend',
    'Set-Cookie: auth_token=from-backend',
    'Server: from-backend',
    'X-Powered-By: from-backend',
    'Via: from-backend',
    'X-AspNet-Version: from-backend',
    ...[...ACTING_HEADERS, 'X-Accel-Redirect', 'X-ACCEL-Buffering', 'x-accel-new'].map(
      (name) => `${name}: from-backend`
    ),
    'Set-Cookie2: from-backend',
    'X-Auth-Permissions-At: /from-backend',
    'Access-Control-Allow-Origin: from-backend',
    'Access-Control-Expose-Headers: from-backend',
    'X-Request-Id: from-backend',
    'X-Gateway-Error: from-backend',
    'Content-Security-Policy: from-backend',
    'Content-Security-Policy-Report-Only: from-backend',
    'Strict-Transport-Security: from-backend',
    'X-Content-Type-Options: from-backend',
    'X-Frame-Options: from-backend',
    'Referrer-Policy: from-backend',
    'Permissions-Policy: from-backend',
    'Connection: X-Mine, keep-alive\r\nX-Mine: from-backend',
    'Connection: keep-alive\r\nconnection: x-mine\r\nX-Mine: from-backend',
    'connection: x-mine\r\nConnection: keep-alive\r\nX-Mine: from-backend'
  ]
  for (const lines of DROPPED) {
    t.test(`the response headers ${JSON.stringify(lines)} of the backend are not forwarded`, async (t) => {
      const response = await withHeaders(`${lines}\r\nX-Other: yes`)

      t.same(response.header('x-other'), ['yes'], 'the others arrive')
      const all = response.headerNames.flatMap((name) => response.header(name)).join('\n')
      t.notMatch(all, /from-backend|timeout=77/)
    })
  }

  t.test('each header of the gateway is sent once, and the response is not cacheable', async (t) => {
    const response = await responseTo(OK)

    for (const name of ['content-security-policy', 'x-frame-options', 'x-request-id', 'date']) {
      t.equal(response.header(name).length, 1, name)
    }
    t.same(response.header('cache-control'), ['no-store'])
  })

  const LOCATIONS: readonly (readonly [title: string, from: (own: string) => string, to: string])[] = [
    ['an absolute address of its own', (own) => `${own}/api/zones/8?a=%2F#b`, '/api/zones/8?a=%2F#b'],
    ['its own address in capitals', (own) => `${own.replace('http', 'HTTP')}/api/zones/8`, '/api/zones/8'],
    ['its own address without a path', (own) => own, '/'],
    ['its own address with only a query', (own) => `${own}?a=b`, '/?a=b'],
    ['its own address without a scheme', (own) => `${own.replace('http:', '')}/api/zones/8`, '/api/zones/8'],
    ['its own address and two slashes', (own) => `${own}//evil.example/x`, '/evil.example/x'],
    ['its own address and a backslash', (own) => `${own}/\\evil.example/x`, '/evil.example/x'],
    ['a path', () => '/api/zones/8', '/api/zones/8'],
    ['a relative path', () => '../zones/8', '../zones/8'],
    ['another host', () => 'https://files.example/a', 'https://files.example/a'],
    ['another port', (own) => `${own}1/api`, 'the same'],
    ['a host that begins alike', (own) => `${own}.evil.example/api`, 'the same'],
    ['nonsense', () => 'http://[/', 'http://[/']
  ]
  for (const [title, from, to] of LOCATIONS) {
    t.test(`a Location does not point to the backend: ${title}`, async (t) => {
      const location = from(backend.url)
      const response = await responseTo(`HTTP/1.1 302 Found\r\nLocation: ${location}\r\nContent-Length: 0\r\n\r\n`)

      t.same(response.header('location'), [to === 'the same' ? location : to])
    })
  }

  const NO_CONTENT: readonly (readonly [title: string, method: 'GET' | 'PUT', bytes: string])[] = [
    ['a 204', 'GET', 'HTTP/1.1 204 No Content\r\n'],
    ['a 204', 'PUT', 'HTTP/1.1 204 No Content\r\n'],
    ['a 204 of length 0', 'PUT', 'HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n'],
    ['a 205', 'GET', 'HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n'],
    ['a 205 in no chunks', 'PUT', 'HTTP/1.1 205 Reset Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n'],
    ['a 200 of length 0 to a write request', 'PUT', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n'],
    ['a 200 in no chunks to a write request', 'PUT', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n']
  ]
  for (const [title, method, bytes] of NO_CONTENT) {
    t.test(`the browser gets 204 without a body if the backend has no content: ${title}, of a ${method}`, async (t) => {
      const [statusLine, ...rest] = bytes.split('\r\n')
      const about = 'Content-Type: application/json\r\nContent-Encoding: gzip\r\nETag: "1"'
      const response = await responseTo(`${[statusLine, about, ...rest].join('\r\n')}\r\n`, method)

      t.equal(response.status, 204)
      t.equal(response.body.length, 0)
      t.same(response.header('etag'), ['"1"'], 'the others arrive')
      for (const name of ['content-type', 'content-length', 'content-encoding', 'transfer-encoding']) {
        t.same(response.header(name), [], name)
      }
    })
  }

  t.test('the browser gets 204 without a body if the backend sends one', async (t) => {
    t.equal((await responseTo('HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n{}', 'PUT')).status, 204)
    t.equal((await responseTo(OK)).status, 200, 'remaining bytes are not part of the next response')
  })

  t.test('an empty list is forwarded unchanged', async (t) => {
    const response = await responseTo('HTTP/1.1 200 OK\r\nContent-Type: text/csv\r\nContent-Length: 0\r\n\r\n')

    t.equal(response.status, 200)
    t.same(response.header('content-type'), ['text/csv'])
    t.equal(response.body.length, 0)
  })

  t.test('the browser gets 201 with or without a body', async (t) => {
    const response = await responseTo('HTTP/1.1 201 Created\r\nLocation: /api/x\r\nContent-Length: 0\r\n\r\n', 'PUT')

    t.equal(response.status, 201)
    t.same(response.header('location'), ['/api/x'])
    t.same(response.header('content-length'), ['0'])
  })

  for (const length of ['', 'Content-Length: 512\r\n']) {
    t.test(`the browser gets 304 with its headers and no body: ${JSON.stringify(length)}`, async (t) => {
      const response = await responseTo(`HTTP/1.1 304 Not Modified\r\nETag: "1"\r\nVary: Accept\r\n${length}\r\n`)

      t.equal(response.status, 304)
      t.equal(response.body.length, 0)
      t.same(response.header('etag'), ['"1"'])
      t.same(response.header('vary'), ['Accept'])
      t.same(response.header('transfer-encoding'), [])
    })
  }

  t.test('a compressed body is forwarded compressed', async (t) => {
    const body = gzipSync('{"a":1}'.repeat(1000))
    const head = `HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${body.length}\r\n\r\n`
    const response = await responseTo(Buffer.concat([Buffer.from(head), body]))

    t.same(response.header('content-encoding'), ['gzip'])
    t.same(response.body, body)
  })

  t.test('a range request gets a part of the file', async (t) => {
    const response = await responseTo(
      'HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 2-3/10\r\nContent-Length: 2\r\n\r\nab'
    )

    t.equal(response.status, 206)
    t.same(response.header('content-range'), ['bytes 2-3/10'])
    t.equal(response.body.toString(), 'ab')
  })

  const FRAMED: readonly (readonly [title: string, bytes: string])[] = [
    ['with a length', 'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello there'],
    ['in chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6;x=y\r\nhello \r\n5\r\nthere\r\n0\r\n\r\n'],
    [
      'in chunks, with trailers',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\nhello there\r\n0\r\nX: y\r\n\r\n'
    ],
    [
      'after it said that it works on it',
      `HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello there`
    ],
    [
      'after early hints',
      `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n`.repeat(2) +
        'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello there'
    ]
  ]
  for (const [title, bytes] of FRAMED) {
    t.test(`the browser gets a body that the backend sends ${title}`, async (t) => {
      const response = await responseTo(bytes)

      t.equal(response.status, 200)
      t.equal(response.body.toString(), 'hello there')
      t.same(response.header('link'), [])
    })
  }

  for (const version of ['1.0', '1.1']) {
    t.test(`the browser gets a body that ends with the connection, from HTTP/${version}`, async (t) => {
      backend.respond = ({ socket }) => socket.end(`HTTP/${version} 200 OK\r\nContent-Type: text/plain\r\n\r\nhello`)

      t.equal((await sendExact(url, routeKind.path)).body.toString(), 'hello')
    })
  }

  t.test('a large response arrives complete', async (t) => {
    const body = Buffer.from(
      JSON.stringify({ rows: Array.from({ length: 400_000 }, (_, id) => ({ id, name: `zone ${id}` })) })
    )
    t.ok(body.length > 10e6)
    const head = `HTTP/1.1 200 OK\r\nContent-Length: ${body.length * 2}\r\n\r\n`
    const response = await responseTo(Buffer.concat([Buffer.from(head), body, body]))

    t.ok(response.body.equals(Buffer.concat([body, body])))
  })

  t.test('an HTTP/1.0 client gets the complete body without chunks', async (t) => {
    backend.respond = ({ socket }) =>
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n there\r\n0\r\n\r\n')

    const response = await sendBytes(url, `GET ${routeKind.path} HTTP/1.0\r\n\r\n`)

    t.match(response, /^HTTP\/1\.1 200 /)
    t.notMatch(response, /transfer-encoding/i)
    t.ok(response.endsWith('\r\n\r\nhello there'), response)
  })

  t.test('pipelined requests get their responses in order', async (t) => {
    const waiters: (() => void)[] = []
    backend.respond = ({ head, socket }) => {
      const name = /\?(\w)/.exec(head)?.[1]
      waiters.push(() => socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n[${name}]`))
      // The backend responds in reverse order.
      if (waiters.length === 3) for (const respond of waiters.toReversed()) respond()
    }

    const responses = await sendBytes(
      url,
      ['a', 'b'].map((name) => `GET ${routeKind.path}?${name} HTTP/1.1\r\nHost: a\r\n\r\n`).join('') +
        `GET ${routeKind.path}?c HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`
    )

    t.same(responses.match(/\[\w\]/g), ['[a]', '[b]', '[c]'])
    t.equal(responses.match(/HTTP\/1\.1 200 /g)?.length, 3)
  })

  t.test('a response arrives complete if the backend fails after it, even for a pipelined request', async (t) => {
    let respondToFirst = (): unknown => undefined
    backend.respond = ({ head, socket }) => {
      if (head.includes('?a ')) respondToFirst = () => socket.write(OK)
      // The gateway rejects the malformed length and closes; only then the first request gets its response.
      else
        socket.once('close', () => respondToFirst()).write('HTTP/1.1 304 Not Modified\r\nContent-Length: 512\r\n\r\n')
    }

    const responses = await sendBytes(
      url,
      `GET ${routeKind.path}?a HTTP/1.1\r\nHost: a\r\n\r\n` +
        `GET ${routeKind.path}?b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`
    )

    t.same(responses.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 200', 'HTTP/1.1 304'])
  })

  t.test('the connection of the browser serves further requests', async (t) => {
    backend.respond = ({ head, socket }) =>
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n[${/\?(\w)/.exec(head)?.[1]}]`)
    const socket = await openSocket(url)
    let responses = ''
    socket.setEncoding('latin1').on('data', (bytes) => {
      responses += bytes
    })
    for (const name of ['a', 'b', 'c']) {
      socket.write(`GET ${routeKind.path}?${name} HTTP/1.1\r\nHost: a\r\n\r\n`)
      while (!responses.endsWith(`[${name}]`)) await once(socket, 'data')
    }
    socket.destroy()

    t.equal(responses.match(/HTTP\/1\.1 200 /g)?.length, 3)
  })

  t.test('forwarded responses cause no warnings in the log', async (t) => {
    t.same(
      logs.filter(({ level }) => Number(level) > 30),
      []
    )
  })
})

forBothRouteKinds(t, 'Location of a backend with a path prefix', async (t, routeKind) => {
  const backend = await startBackend(t)
  const { url } = await startGateway(t, { env: { BACKEND_URL: `${backend.url}/base` } })

  const LOCATIONS: readonly (readonly [title: string, from: (own: string) => string, to: string])[] = [
    ['its address and path', (own) => `${own}/base/api/zones/8?a=b`, '/api/zones/8?a=b'],
    ['its path', () => '/base/api/zones/8', '/api/zones/8'],
    ['its path and two slashes', () => '/base//evil.example', '/evil.example'],
    ['its address and another path', (own) => `${own}/other`, '/other'],
    ['another path', () => '/api/zones/8', '/api/zones/8'],
    ['a path that begins alike', () => '/basement', '/basement'],
    ['a relative path', () => 'base/api', 'base/api'],
    ['another host', () => 'https://files.example/base/a', 'https://files.example/base/a']
  ]
  for (const [title, from, to] of LOCATIONS) {
    t.test(`a Location of a backend with a path prefix is mapped to the gateway: ${title}`, async (t) => {
      const location = from(backend.url)
      backend.respond = ({ socket }) =>
        socket.write(`HTTP/1.1 302 Found\r\nLocation: ${location}\r\nContent-Length: 0\r\n\r\n`)

      t.same((await sendExact(url, routeKind.path)).header('location'), [to])
    })
  }
})

t.test('a HEAD', async (t) => {
  for (const path of ['/api/zones/7', '/api/unknown/7']) {
    t.test(`HEAD ${path} gets the headers with the length and no body`, async (t) => {
      const backend = await startBackend(
        t,
        'HTTP/1.1 200 OK\r\nContent-Length: 123\r\nETag: "1"\r\nContent-Type: a/b\r\n\r\n'
      )
      const { url } = await startGateway(t, { env: { BACKEND_URL: backend.url } })

      const response = await sendExact(url, path, { method: 'HEAD' })

      t.equal(response.status, 200)
      t.same(response.header('content-length'), ['123'])
      t.same(response.header('content-type'), ['a/b'])
      t.same(response.header('etag'), ['"1"'])
      t.equal(response.body.length, 0)
    })
  }
})
