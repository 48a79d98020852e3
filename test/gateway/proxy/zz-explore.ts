import t from 'tap'
import { request as httpRequest } from 'node:http'
import { once } from 'node:events'
import { startGateway, browserHeaders } from '../../helper/gateway.js'
import { sendRaw } from '../../helper/http.js'
import { startRawBackend, startHttpBackend } from '../../helper/scripted-backend.js'

const ask = async (base: string, path: string, { method = 'GET', headers = {} as any, body = undefined as any } = {}) => {
  const { hostname, port } = new URL(base)
  const request = httpRequest({ hostname, port, path, method, headers, agent: false })
  request.end(body)
  const [response] = await once(request, 'response')
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk)
  return { status: response.statusCode, message: response.statusMessage, raw: response.rawHeaders, body: Buffer.concat(chunks).toString('latin1') }
}
const BORING = /^(content-security|strict-tr|x-content-type|x-frame|referrer|permissions|x-request-id|date|keep-alive|connection$)/i
const show = (a: any) => { const h: string[] = []; for (let i = 0; i < a.raw.length; i += 2) if (!BORING.test(a.raw[i])) h.push(`${a.raw[i]}: ${a.raw[i+1]}`); return `${a.status} ${a.message} [${h.join(' | ')}] ${JSON.stringify(a.body.slice(0, 150))}` }
const CASES: [string, string, object?][] = [
  ['ok', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}'],
  ['99', 'HTTP/1.1 099 X\r\nContent-Length: 2\r\n\r\n{}'],
  ['600', 'HTTP/1.1 600 X\r\nContent-Length: 2\r\n\r\n{}'],
  ['999', 'HTTP/1.1 999 X\r\nContent-Length: 2\r\n\r\n{}'],
  ['1000', 'HTTP/1.1 1000 X\r\nContent-Length: 2\r\n\r\n{}'],
  ['100 first', 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}'],
  ['102 first', 'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}'],
  ['103 first', 'HTTP/1.1 103 Early\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}'],
  ['http/0.9', '<html>hi</html>'],
  ['bare LF', 'HTTP/1.1 200 OK\nContent-Length: 2\n\n{}'],
  ['bare CR value', 'HTTP/1.1 200 OK\r\nX-A: a\rb\r\nContent-Length: 2\r\n\r\n{}'],
  ['ctl value', 'HTTP/1.1 200 OK\r\nX-A: a\x01b\r\nContent-Length: 2\r\n\r\n{}'],
  ['del value', 'HTTP/1.1 200 OK\r\nX-A: a\x7fb\r\nContent-Length: 2\r\n\r\n{}'],
  ['nul value', 'HTTP/1.1 200 OK\r\nX-A: a\x00b\r\nContent-Length: 2\r\n\r\n{}'],
  ['bad name', 'HTTP/1.1 200 OK\r\nX A: ab\r\nContent-Length: 2\r\n\r\n{}'],
  ['empty name', 'HTTP/1.1 200 OK\r\n: ab\r\nContent-Length: 2\r\n\r\n{}'],
  ['latin1 name', 'HTTP/1.1 200 OK\r\nX\xe9: ab\r\nContent-Length: 2\r\n\r\n{}'],
  ['obs-fold', 'HTTP/1.1 200 OK\r\nX-A: a\r\n b\r\nContent-Length: 2\r\n\r\n{}'],
  ['neg cl', 'HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n{}'],
  ['dup cl same', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}'],
  ['dup cl', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}'],
  ['cl + te', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n'],
  ['cl long', 'HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{}'],
  ['cl short', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{} and more'],
  ['no body then die', 'HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n'],
  ['chunked die', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n'],
  ['chunked die at once', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'],
  ['chunked garbage', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n'],
  ['until close', 'HTTP/1.1 200 OK\r\n\r\nuntil close'],
  ['http/1.0', 'HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nuntil close'],
  ['http/2 line', 'HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\n{}'],
  ['no reason', 'HTTP/1.1 200\r\nContent-Length: 2\r\n\r\n{}'],
  ['odd reason', 'HTTP/1.1 200 Fine by me\r\nContent-Length: 2\r\n\r\n{}'],
  ['204', 'HTTP/1.1 204 No Content\r\n\r\n'],
  ['204 with type', 'HTTP/1.1 204 No Content\r\nContent-Type: a/b\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\nETag: "1"\r\n\r\n'],
  ['204 with body', 'HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n{}'],
  ['205', 'HTTP/1.1 205 Reset\r\nContent-Type: a/b\r\nContent-Length: 0\r\n\r\n'],
  ['205 chunked', 'HTTP/1.1 205 Reset\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n'],
  ['304', 'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\nContent-Length: 20\r\n\r\n'],
  ['empty 200', 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n'],
  ['empty chunked', 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
  ['empty 201', 'HTTP/1.1 201 OK\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n'],
  ['utf8', 'HTTP/1.1 200 OK\r\nContent-Disposition: attachment; filename="na\xc3\xafve.csv"\r\nX-L: na\xefve\r\nContent-Length: 2\r\n\r\n{}'],
  ['utf8 chunked', 'HTTP/1.1 200 OK\r\nContent-Disposition: attachment; filename="na\xc3\xafve.csv"\r\nX-L: na\xefve\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n'],
  ['two links', 'HTTP/1.1 401 OK\r\nLink: <a>\r\nLink: <b>\r\nWWW-Authenticate: Basic\r\nWWW-Authenticate: Bearer\r\nVary: a\r\nVary: b\r\nSet-Cookie: a=b\r\nVia: x\r\nServer: y\r\nAlt-Svc: z\r\nContent-Length: 2\r\n\r\n{}'],
  ['two types', 'HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Type: c/d\r\nContent-Length: 2\r\n\r\n{}'],
  ['two dates', 'HTTP/1.1 200 OK\r\nDate: Mon\r\nDate: Tue\r\nETag: "1"\r\nETag: "2"\r\nContent-Length: 2\r\n\r\n{}'],
  ['conn named', 'HTTP/1.1 200 OK\r\nConnection: x-a, close\r\nX-A: 1\r\nKeep-Alive: timeout=5\r\nTrailer: x\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\n{}'],
  ['conn two', 'HTTP/1.1 200 OK\r\nConnection: x-a\r\nConnection: x-b\r\nX-A: 1\r\nX-B: 1\r\nContent-Length: 2\r\n\r\n{}'],
  ['trailers', 'HTTP/1.1 200 OK\r\nTrailer: X-T\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-T: 1\r\n\r\n'],
  ['gzip te', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n'],
]
const only = process.env.ONLY
const say = (x: string) => console.error(x.replace(/\[x-gateway-error: (\w+).*$/, '$1'))
t.setTimeout(0)
t.test('explore', { timeout: 0 }, async (t) => {
  for (const [name, bytes] of CASES) {
    if (only && name !== only) continue
    for (const [path, method] of [['/api/zones/7', 'GET'], ['/api/unknown/7', 'GET'], ['/api/zones/7', 'PUT'], ['/api/unknown/7', 'PUT'], ['/api/unknown/7', 'HEAD']] as const) {
      const backend = await startRawBackend(t, ({ socket }) => socket.end(bytes, 'latin1'))
      const { url, logs } = await startGateway(t, { env: { BACKEND_URL: backend.url, BACKEND_TIMEOUT_MS: '2000' } })
      const answer = await ask(url, path, { method, headers: { ...browserHeaders(), 'content-type': 'application/json' }, body: method === 'PUT' ? '{"name":"x"}' : undefined }).then(show, (e) => `BROKEN ${e.code} ${e.message}`)
      say(`${name.padEnd(20)} ${method} ${path.slice(5, 10)} #${backend.requests.length} ${answer}`)
      for (const l of logs) if (l.msg !== 'request' && !/listening/.test(String(l.msg)) && l.msg !== 'refused') say('     log ' + l.level + ' ' + l.msg + ' ' + ((l as any).err?.message ?? '').slice(0, 60))
    }
  }
})
