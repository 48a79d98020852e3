import t, { type Test } from 'tap'
import { startGateway, type TestGateway } from '../../helper/gateway.js'
import { type HttpResponse, sendRaw } from '../../helper/http.js'

const LIMIT = 100

/** A request with this many header lines; the last ones are given. */
const rawRequest = (requestLine: string, lines: number, last: readonly string[] = []): string => {
  const own = ['Host: a', 'Connection: close', 'Content-Length: 0']
  const padding = Array.from({ length: lines - own.length - last.length }, () => 'x:')
  return [requestLine, ...own, ...padding, ...last, '', ''].join('\r\n')
}

const isTooLarge = (t: Test, response: HttpResponse): void => {
  t.equal(response.status, 431)
  t.equal(response.json().error.code, 'HEADERS_TOO_LARGE')
  t.match(response.headers, {
    'x-gateway-error': 'HEADERS_TOO_LARGE',
    'x-content-type-options': 'nosniff',
    'content-security-policy': /default-src 'self'/,
    'x-request-id': /./,
    connection: 'close'
  })
}

t.test('a request with 100 header lines is served', async (t) => {
  const { url, backend } = await startGateway(t)

  const response = await sendRaw(url, rawRequest('GET /api/zones HTTP/1.1', LIMIT))

  t.equal(response.status, 200)
  t.equal(backend.requests.length, 1)
})

t.test('a request with more than 100 header lines is 431 HEADERS_TOO_LARGE and reaches no backend', async (t) => {
  const { url, backend } = await startGateway(t)

  for (const lines of [LIMIT + 1, 1001, 2001, 3000]) {
    isTooLarge(t, await sendRaw(url, rawRequest('GET /api/zones HTTP/1.1', lines)))
  }

  t.same(backend.requests, [])
})

t.test('an X-Forwarded-For after thousands of header lines does not open /metrics', async (t) => {
  const { url } = await startGateway(t, { env: { TRUST_PROXY: 'loopback' } })
  const forwarded = ['X-Forwarded-For: 203.0.113.7']

  const open = await sendRaw(url, rawRequest('GET /metrics HTTP/1.1', 10, forwarded))
  t.not(open.status, 200, 'a forwarded request may not read the metrics')
  for (const lines of [1100, 2100, 3000]) {
    isTooLarge(t, await sendRaw(url, rawRequest('GET /metrics HTTP/1.1', lines, forwarded)))
  }
})

t.test('a request with too many header lines leaves no audit record and is not a login attempt', async (t) => {
  const gateway = await startGateway(t)
  const { url, send } = gateway

  isTooLarge(t, await sendRaw(url, rawRequest('GET /api/audit/logs HTTP/1.1', 101)))
  for (let attempt = 0; attempt < 6; attempt++)
    isTooLarge(t, await sendRaw(url, rawRequest('POST /api/auth/login HTTP/1.1', 101)))

  t.same(await gateway.auditRecords(), [])
  t.not((await send('/api/auth/login', { method: 'POST', body: '{}' })).status, 429)
})

t.test('a request with too many header lines and a malformed path is 431', async (t) => {
  const { url }: TestGateway = await startGateway(t)

  isTooLarge(t, await sendRaw(url, rawRequest('GET /api/%zz HTTP/1.1', 101)))
})
