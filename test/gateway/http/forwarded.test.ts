import t from 'tap'
import { borrowGateway, browserHeaders } from '../../helper/gateway.js'
import { sendRaw } from '../../helper/http.js'

const BEHIND_PROXY = { TRUST_PROXY: 'loopback' }

const rawGet = (...headers: string[]): string =>
  ['GET /api/zones HTTP/1.1', 'Host: own.example:81', 'Connection: close', ...headers, '', ''].join('\r\n')

for (const [sent, forwarded] of [
  ['https', 'https'],
  ['HTTPS', 'https'],
  ['http', 'http'],
  ['http, https', 'https'],
  ['javascript', 'http'],
  ['https://evil.example', 'http'],
  ['wss', 'http'],
  ['', 'http']
]) {
  t.test(`X-Forwarded-Proto "${sent}" of a trusted proxy reaches the backend as ${forwarded}`, async (t) => {
    const { url, backend } = await borrowGateway(t, BEHIND_PROXY)

    await sendRaw(url, rawGet(`X-Forwarded-Proto: ${sent}`))

    t.equal(backend.requests[0]?.headers['x-forwarded-proto'], forwarded)
  })
}

for (const [sent, forwarded] of [
  ['app.example', 'app.example'],
  ['app.example:8443', 'app.example:8443'],
  ['[2001:db8::1]:8443', '[2001:db8::1]:8443'],
  ['evil.com/<x>@y', 'own.example:81'],
  ['user@app.example', 'own.example:81'],
  ['app.example:99999', 'own.example:81'],
  ['app.example:x', 'own.example:81'],
  ['[::1', 'own.example:81'],
  [':80', 'own.example:81'],
  ['a b', 'own.example:81'],
  ['a\\b', 'own.example:81'],
  ['caf\xe9.example', 'own.example:81'],
  ['', 'own.example:81']
]) {
  t.test(`X-Forwarded-Host "${sent}" of a trusted proxy reaches the backend as ${forwarded}`, async (t) => {
    const { url, backend } = await borrowGateway(t, BEHIND_PROXY)

    await sendRaw(url, rawGet(`X-Forwarded-Host: ${sent}`))

    t.equal(backend.requests[0]?.headers['x-forwarded-host'], forwarded)
  })
}

t.test('with an invalid X-Forwarded-Host, the Origin is compared with the Host header', async (t) => {
  const { send } = await borrowGateway(t, BEHIND_PROXY)
  const headers = { ...browserHeaders(), host: 'own.example', 'x-forwarded-host': 'evil.com/<x>@y' }
  const post = (origin: string) => send('/api/unknown', { method: 'POST', headers: { ...headers, origin }, body: '{}' })

  t.equal((await post('http://own.example')).status, 200)
  t.equal((await post('http://evil.com')).code, 'ORIGIN_REFUSED')
})
