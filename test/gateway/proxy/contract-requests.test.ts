import { once } from 'node:events'
import t from 'tap'
import { browse, readResponse, responseOf, sendBytes, sendExact } from '../../helper/exact-http.js'
import { startGateway, tokenOf } from '../../helper/gateway.js'
import { forBothRouteKinds, formHeaders, jsonHeaders, ZONE } from '../../helper/route-kinds.js'
import { type RawBackend, startRawBackend } from '../../helper/scripted-backend.js'

// Declared routes and the catch-all must send the same request to the backend.

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}'

const startBackend = (t: Parameters<typeof startRawBackend>[0]): Promise<RawBackend> =>
  startRawBackend(t, ({ socket }) => socket.write(OK))

const headOf = (backend: RawBackend): string => backend.requests.at(-1)?.head ?? ''
const requestLineOf = (backend: RawBackend): string => headOf(backend).split('\r\n', 1).join('')

/** The values of a header at the backend, one for each line. */
const sentOn = (backend: RawBackend, name: string): string[] =>
  headOf(backend)
    .split('\r\n')
    .filter((line) => line.toLowerCase().startsWith(`${name.toLowerCase()}:`))
    .map((line) => line.slice(name.length + 1).trim())

/** A raw request, after which the gateway closes the connection. */
const rawRequest = (requestLine: string, ...headers: string[]): string =>
  [requestLine, 'Host: gateway.example', 'Connection: close', ...headers, '', ''].join('\r\n')

forBothRouteKinds(t, 'forwarded requests', async (t, routeKind) => {
  const backend = await startBackend(t)
  const { url } = await startGateway(t, { env: { BACKEND_URL: backend.url } })

  for (const [method, path] of routeKind.methods) {
    t.test(`method, path and body of ${method} ${path} are forwarded`, async (t) => {
      const body = /^P/.test(method) ? ZONE : ''
      await sendExact(url, path, { method, headers: jsonHeaders(), body })

      t.equal(requestLineOf(backend), `${method} ${path} HTTP/1.1`)
      t.equal(backend.requests.at(-1)?.body, body)
    })
  }

  const TARGETS: readonly (readonly [suffix: string, title: string])[] = [
    ['', 'nothing'],
    ['?', 'an empty query'],
    ['?a=1&a=2&b=&&c', 'names that come twice and values that do not come'],
    ['?q=%2F%20%c3%A4+%41', 'encoded characters, in either letter case'],
    ['?q=%zz%', 'encoding that is none'],
    ['?next=/a//b/../c;d\\e', 'what would be wrong in a path'],
    [`?${'q'.repeat(4000)}`, 'a long query'],
    ['?a="<{[|^`]}>\'', 'characters that a URL parser would encode'],
    ['%20x%c3%a4?a?b', 'an encoded id']
  ]
  for (const [suffix, title] of TARGETS) {
    t.test(`the request target is forwarded unchanged: ${title}`, async (t) => {
      await sendBytes(url, rawRequest(`GET ${routeKind.path}${suffix} HTTP/1.1`))

      t.equal(requestLineOf(backend), `GET ${routeKind.path}${suffix} HTTP/1.1`)
    })
  }

  const FORWARDED_HEADERS: readonly (readonly [name: string, value: string])[] = [
    ['accept', 'text/html, */*;q=0.8'],
    ['accept-encoding', 'gzip, br'],
    ['accept-language', 'de-CH,de;q=0.9'],
    ['user-agent', 'Mozilla/5.0 (X11)'],
    ['referer', 'https://app.example/zones?x=1'],
    ['if-none-match', '"abc", W/"d"'],
    ['if-modified-since', 'Mon, 01 Jan 2024 00:00:00 GMT'],
    ['range', 'bytes=0-99'],
    ['traceparent', '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'],
    ['x-mine', 'na\xefve \xc3\xa9'],
    ['x-empty', '']
  ]
  for (const [name, value] of FORWARDED_HEADERS) {
    t.test(`the header ${name} is forwarded unchanged`, async (t) => {
      await sendBytes(url, rawRequest(`GET ${routeKind.path} HTTP/1.1`, `${name}: ${value}`))

      t.same(sentOn(backend, name), [value])
    })
  }

  const DROPPED: readonly (readonly [name: string, value?: string])[] = [
    ['Keep-Alive'],
    ['Proxy-Authenticate'],
    ['Proxy-Authorization'],
    ['Proxy-Connection'],
    ['TE', 'trailers;q=0.123'],
    ['Trailer'],
    ['HTTP2-Settings'],
    ['Cookie', 'theme=from-browser'],
    ['X-CSRF-Token'],
    ['Forwarded', 'for=from-browser'],
    ['X-Forwarded-For'],
    ['X-Forwarded-Proto'],
    ['X-Forwarded-Host'],
    ['X-Forwarded-User'],
    ['X-Real-IP'],
    ['X-Request-Id', 'from browser, with blanks'],
    ['X-Original-URL'],
    ['X-Original-URI'],
    ['X-Original-Host'],
    ['X-Host'],
    ['X-Client-IP'],
    ['X-Cluster-Client-IP'],
    ['True-Client-IP'],
    ['CF-Connecting-IP'],
    ['X-Forwarded'],
    ['X-Url-Scheme'],
    ['Front-End-Https'],
    ['Via'],
    ['Proxy'],
    ['X-Rewrite-URL'],
    ['X-HTTP-Method'],
    ['X-HTTP-Method-Override'],
    ['X-Method-Override'],
    ['X_Forwarded_For'],
    ['Any_Name']
  ]
  for (const [name, value = 'from-browser'] of DROPPED) {
    t.test(`the header ${name} of the browser is not forwarded`, async (t) => {
      await sendBytes(url, rawRequest(`GET ${routeKind.path} HTTP/1.1`, `${name}: ${value}`, 'X-Mine: yes'))

      t.same(sentOn(backend, 'x-mine'), ['yes'], 'the others arrive')
      t.notMatch(headOf(backend), value)
    })
  }

  t.test('headers that Connection names are not forwarded, except those that the gateway sets', async (t) => {
    await sendBytes(
      url,
      rawRequest(
        `GET ${routeKind.path} HTTP/1.1`,
        'Connection: X-Mine , authorization,x-forwarded-for, X-Request-Id',
        'X-Mine: from-browser',
        'X-Other: yes',
        `Cookie: auth_token=${tokenOf('operator')}`
      )
    )

    t.same(sentOn(backend, 'x-mine'), [])
    t.same(sentOn(backend, 'x-other'), ['yes'])
    t.match(sentOn(backend, 'authorization'), [/^Bearer ./])
    t.same(sentOn(backend, 'x-forwarded-for'), ['127.0.0.1'])
    t.match(sentOn(backend, 'x-request-id'), [/^[\w.-]+$/])
  })

  t.test('the backend gets client address, protocol, host and request id', async (t) => {
    const response = await sendBytes(url, rawRequest(`GET ${routeKind.path} HTTP/1.1`))

    t.same(sentOn(backend, 'x-forwarded-for'), ['127.0.0.1'])
    t.same(sentOn(backend, 'x-forwarded-proto'), ['http'])
    t.same(sentOn(backend, 'x-forwarded-host'), ['gateway.example'])
    t.same(sentOn(backend, 'x-request-id'), [/x-request-id: (\S+)/i.exec(response)?.[1]])
    t.same(sentOn(backend, 'host'), [new URL(backend.url).host])
  })

  t.test('a repeated header is forwarded as one line', async (t) => {
    const lines = ['Accept: a/b', 'Accept: c/d', 'X-Mine: 1', 'X-Mine: 2', 'User-Agent: first', 'User-Agent: second']
    await sendBytes(url, rawRequest(`GET ${routeKind.path} HTTP/1.1`, ...lines))

    t.same(sentOn(backend, 'accept'), ['a/b, c/d'])
    t.same(sentOn(backend, 'x-mine'), ['1, 2'])
    t.same(sentOn(backend, 'user-agent'), ['first'])
  })

  t.test('the body of a read is neither forwarded nor read as the next request', async (t) => {
    const before = backend.requests.length
    const hidden = `GET ${routeKind.path}?hidden HTTP/1.1\r\nHost: a\r\n\r\n`
    await sendBytes(
      url,
      `GET ${routeKind.path}?1 HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: ${hidden.length}\r\n\r\n` +
        hidden +
        rawRequest(`GET ${routeKind.path}?2 HTTP/1.1`)
    )

    const [first, second, ...more] = backend.requests.slice(before)
    t.match(first?.head, `GET ${routeKind.path}?1 `)
    t.match(second?.head, `GET ${routeKind.path}?2 `)
    t.same(more, [])
    t.notMatch(first?.head, /^(?:content-type|content-length|transfer-encoding):/im)
  })

  t.test('a body with Expect: 100-continue is forwarded', async (t) => {
    const request = browse(url, routeKind.path, {
      method: 'PUT',
      headers: { ...jsonHeaders(), 'content-length': ZONE.length, expect: '100-continue' }
    })
    request.flushHeaders()
    await once(request, 'continue')
    const response = await readResponse(await responseOf(request.end(ZONE)))

    t.equal(response.status, 200)
    t.same(sentOn(backend, 'expect'), [])
    t.equal(backend.requests.at(-1)?.body, ZONE)
  })

  t.test('a request with Upgrade is forwarded as an ordinary request', async (t) => {
    const response = await sendBytes(
      url,
      `GET ${routeKind.path} HTTP/1.1\r\nHost: a\r\nConnection: close, Upgrade\r\nUpgrade: h2c\r\n\r\n`
    )

    t.match(response, /^HTTP\/1\.1 200 /)
    t.same(sentOn(backend, 'upgrade'), [])
  })

  // Around the sizes at which head and body are sent in separate packets.
  const KIB_16 = 16 * 1024
  const SIZES = [256, KIB_16 - 2048, KIB_16 - 700, KIB_16 - 600, KIB_16 - 500, KIB_16 - 1, KIB_16, KIB_16 + 1, 70_000]
  for (const size of SIZES) {
    t.test(`an upload of ${size} bytes arrives complete`, async (t) => {
      const body = Buffer.from(Array.from({ length: size }, (_, index) => index + (index >> 8)))
      await sendExact(url, routeKind.upload, {
        method: 'POST',
        headers: { ...formHeaders(), 'content-length': size },
        body
      })

      t.equal(sentOn(backend, 'content-length').join(), String(size))
      t.ok(Buffer.from(backend.requests.at(-1)?.body ?? '', 'latin1').equals(body))
    })
  }

  t.test('a header that is not ASCII is forwarded unchanged', async (t) => {
    await sendBytes(url, rawRequest(`GET ${routeKind.path} HTTP/1.1`, 'X-Name: K\xfcche \xc3\xbc \x80'))

    t.same(sentOn(backend, 'x-name'), ['K\xfcche \xc3\xbc \x80'])
  })

  t.test('the lines of a header that cannot be joined are forwarded separately', async (t) => {
    await sendBytes(url, rawRequest(`GET ${routeKind.path} HTTP/1.1`, 'Set-Cookie: a=1', 'Set-Cookie: b=2'))

    t.same(sentOn(backend, 'set-cookie'), ['a=1', 'b=2'])
  })

  t.test('the forwarded Content-Length matches the body', async (t) => {
    const body = '{ "name" : "Küche",\n  "metadata": {} }'
    await sendExact(url, routeKind.path, { method: 'PUT', headers: jsonHeaders(), body })

    const { body: arrived = '' } = backend.requests.at(-1) ?? {}
    t.same(sentOn(backend, 'content-length'), [String(arrived.length)])
    t.same(JSON.parse(Buffer.from(arrived, 'latin1').toString()), JSON.parse(body))
  })
})

forBothRouteKinds(t, 'a backend with a path prefix', async (t, routeKind) => {
  t.test('the path prefix of BACKEND_URL is prepended', async (t) => {
    const backend = await startBackend(t)
    const { url } = await startGateway(t, { env: { BACKEND_URL: `${backend.url}/base/v1/` } })

    await sendBytes(url, rawRequest(`GET ${routeKind.path}?a=%2F HTTP/1.1`))

    t.equal(requestLineOf(backend), `GET /base/v1${routeKind.path}?a=%2F HTTP/1.1`)
  })
})

forBothRouteKinds(t, 'PUBLIC_URL', async (t, routeKind) => {
  t.test('the backend gets the host of PUBLIC_URL with any Host of the browser', async (t) => {
    const backend = await startBackend(t)
    const { url } = await startGateway(t, {
      env: { BACKEND_URL: backend.url, PUBLIC_URL: 'https://app.example:8443/' }
    })

    await sendBytes(url, rawRequest(`GET ${routeKind.path} HTTP/1.1`))

    t.same(sentOn(backend, 'x-forwarded-host'), ['app.example:8443'])
  })
})
