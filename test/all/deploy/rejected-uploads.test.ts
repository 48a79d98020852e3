import t from 'tap'
import { freePort } from '../../helper/free-port.js'
import { browserHeaders, startGateway } from '../../helper/gateway.js'
import { APP } from './certificate.js'
import { ExternalClient } from './external-client.js'
import { startNginx } from './proxies.js'

// The ratio of 27 MB to the limit of 25 MiB.
const UPLOAD = Buffer.alloc(18e6)
const JSON_BODY = Buffer.alloc(1.5e6, 'x')
const ENV = { TRUST_PROXY: 'loopback', UPLOAD_LIMIT: '16MiB' }

t.test('uploads that are too large are 413 behind nginx and affect no other client', async (t) => {
  const gateways = [await startGateway(t, { env: ENV }), await startGateway(t, { env: ENV })]
  const unused = `127.0.0.1:${await freePort()}`
  const proxy = await startNginx(t, {
    gateways: gateways.map(({ url }) => new URL(url).host),
    relays: [unused],
    ingest: unused
  })
  const client = new ExternalClient(proxy)
  const post = (path: string, type: string, body: Buffer) =>
    client.send(APP, path, { method: 'POST', headers: { ...browserHeaders(), 'content-type': type }, body })

  const rejected = [
    ...Array.from({ length: 10 }, () => post('/api/unknown', 'application/octet-stream', UPLOAD)),
    ...Array.from({ length: 4 }, () => post('/api/zones', 'application/json', JSON_BODY))
  ]
  let isDone = false
  const all = Promise.all(rejected).finally(() => {
    isDone = true
  })
  while (!isDone) t.equal((await client.send(APP, '/api/health', { from: '127.0.0.9' })).status, 200)
  for (const { status, headers, body } of await all) {
    t.equal(status, 413)
    t.equal(headers['x-gateway-error'], 'BODY_TOO_LARGE')
    t.match(body, '"code":"BODY_TOO_LARGE"')
  }
  for (const { backend } of gateways) t.same(backend.requests, [])
})
