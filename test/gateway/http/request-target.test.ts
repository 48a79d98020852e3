import t from 'tap'
import { borrowGateway, browserHeaders } from '../../helper/gateway.js'
import { sendRaw } from '../../helper/http.js'

const rawRequest = (target: string, host = 'gateway.example:8080', method = 'GET', ...headers: string[]): string =>
  [`${method} ${target} HTTP/1.1`, `Host: ${host}`, 'Connection: close', ...headers, '', ''].join('\r\n')

for (const [target, forwarded] of [
  ['http://gateway.example:8080/api/zones', '/api/zones'],
  ['HTTP://Gateway.Example:8080/api/zones/A%20b?q=http://x/%2F', '/api/zones/A%20b?q=http://x/%2F'],
  ['https://gateway.example:8080/api/zones?', '/api/zones?']
] as const) {
  t.test(`an absolute target for the request's own host is served: ${target}`, async (t) => {
    const { url, backend } = await borrowGateway(t)

    const response = await sendRaw(url, rawRequest(target))

    t.equal(response.status, 200)
    t.equal(backend.requests[0]?.url, forwarded)
  })
}

for (const target of [
  'http://other.example/api/zones',
  'http://gateway.example/api/zones',
  'http://user@gateway.example:8080/api/zones',
  'http://gateway.example:8080@other.example/api/zones',
  'ftp://gateway.example:8080/api/zones',
  'http://gateway.example:8080//api/zones',
  'http://gateway.example:8080/api/../api/zones',
  'http:/api/zones',
  'gateway.example:8080'
]) {
  t.test(`an absolute target for another host or scheme is rejected: ${target}`, async (t) => {
    const { url, backend } = await borrowGateway(t)

    const response = await sendRaw(url, rawRequest(target))

    t.equal(response.status, 400)
    t.match(response.code, /^(?:AMBIGUOUS_PATH|MALFORMED_REQUEST)$/)
    t.same(backend.requests, [])
  })
}

t.test('an absolute target has the same access rules as its path', async (t) => {
  const { url } = await borrowGateway(t)
  const base = 'http://gateway.example:8080'

  t.equal((await sendRaw(url, rawRequest(`${base}/api/admin/users`))).code, 'UNAUTHENTICATED')
  t.equal((await sendRaw(url, rawRequest(`${base}/api/zones`, undefined, 'POST'))).code, 'CSRF_MISMATCH')
  t.equal((await sendRaw(url, rawRequest(`${base}/api/Admin/users`))).code, 'AMBIGUOUS_PATH')
  t.equal((await sendRaw(url, rawRequest(base))).code, 'NOT_FOUND')
})

t.test('the catch-all forwards an empty or malformed Content-Type unchanged', async (t) => {
  const { url, backend } = await borrowGateway(t)
  const headers = Object.entries(browserHeaders()).map(([name, value]) => `${name}: ${value}`)

  for (const type of ['', 'garbage;;', 'text', '/', 'a/b, c/d', 'a/b; c', 'undefined', 'caf\xe9', 'APPLICATION/Json']) {
    backend.requests.length = 0
    const lines = [...headers, `Content-Type: ${type}`, 'Content-Length: 3']
    const response = await sendRaw(url, `${rawRequest('/api/unknown', 'a', 'POST', ...lines)}a=b`)

    t.equal(response.status, 200, type)
    t.equal(backend.requests[0]?.headers['content-type'], type)
    t.equal(backend.requests[0]?.body, 'a=b')
  }
})
