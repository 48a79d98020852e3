import t from 'tap'
import { gatewaySettings } from '../../../src/gateway/settings.js'
import { freePort } from '../../helper/free-port.js'
import { send } from '../../helper/http.js'
import { NGINX_TIMEOUT_S, startNginx, startNginxWith } from './proxies.js'
import { proxySuite } from './proxy-suite.js'
import { shipped } from './shipped.js'

t.test('nginx', (t) => proxySuite(t, startNginx, { keepsSockets: true, idleTimeoutS: NGINX_TIMEOUT_S }))

t.test('nginx waits for a silent stream longer than the gateway does', async (t) => {
  const [, appHost = ''] = shipped('deploy/nginx/gatehouse.conf').split('server_name app.example.com;')
  const [, seconds] = /proxy_read_timeout (\d+)s;/.exec(appHost) ?? []
  for (const { fallback } of [gatewaySettings.BACKEND_STREAM_IDLE_MS, gatewaySettings.RELAY_UPSTREAM_IDLE_MS])
    t.ok(Number(seconds) * 1000 > fallback, `${seconds} s, and ${fallback} ms in the gateway`)
})

t.test('nginx without a default site closes plain connections of unknown hosts', async (t) => {
  const address = `127.0.0.1:${await freePort()}`
  const upstreams = { gateways: [address], relays: [address] }
  const { plainPort } = await startNginxWith(t, upstreams, { hasDefaultSite: false })

  await t.rejects(send(`http://127.0.0.1:${plainPort}`, '/', { headers: { host: 'evil.example.net' } }))
  const known = await send(`http://127.0.0.1:${plainPort}`, '/', { headers: { host: 'app.example.com' } })
  t.equal(known.status, 308)
})
