import t from 'tap'
import { freePort } from '../helper/free-port.js'
import { send } from '../helper/http.js'
import { NGINX_TIMEOUT_S, startNginx, startNginxWith } from './proxies.js'
import { proxySuite } from './proxy-suite.js'

t.test('nginx', (t) => proxySuite(t, startNginx, { keepsSockets: true, idleTimeoutS: NGINX_TIMEOUT_S }))

t.test('nginx without a default site closes plain connections of unknown hosts', async (t) => {
  const address = `127.0.0.1:${await freePort()}`
  const upstreams = { gateways: [address], relays: [address], ingest: address }
  const { plainPort } = await startNginxWith(t, upstreams, { hasDefaultSite: false })

  await t.rejects(send(`http://127.0.0.1:${plainPort}`, '/', { headers: { host: 'evil.example.net' } }))
  const known = await send(`http://127.0.0.1:${plainPort}`, '/', { headers: { host: 'app.example.com' } })
  t.equal(known.status, 308)
})
