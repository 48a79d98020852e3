import t from 'tap'
import { browserHeaders, startGateway, tokenOf } from '../../helper/gateway.js'

const OFFER = {
  connection: 'Upgrade, HTTP2-Settings',
  upgrade: 'h2c',
  'http2-settings': 'AAMAAABkAAQCAAAAAAIAAAAA'
}

t.test('the gateway serves requests that offer an upgrade to h2c as ordinary requests', async (t) => {
  const { send, backend } = await startGateway(t)
  const headers = { ...browserHeaders(tokenOf('admin')), ...OFFER }

  t.equal((await send('/api/health', { headers })).status, 200)
  t.equal((await send('/api/things', { headers })).status, 200)
  const posted = { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body: '{"a":1}' }
  t.equal((await send('/api/things', posted)).status, 200)
  t.equal(backend.requests.at(-1)?.body.toString(), '{"a":1}')
  for (const request of backend.requests) {
    t.notMatch(request.headers, { upgrade: /./ })
    t.notMatch(request.headers, { 'http2-settings': /./ })
  }
})
