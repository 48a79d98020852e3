import t from 'tap'
import { eventually } from '../../helper/eventually.js'
import { freePort } from '../../helper/free-port.js'
import { startGateway } from '../../helper/gateway.js'
import { startTcpProxy } from '../../helper/tcp-proxy.js'
import { startUpstreams } from './upstreams-fixture.js'

const ROWS = [
  { name: 'one', paths: ['/one'], connections: 2, max_queue: 3, timeout_ms: 60_000 },
  { name: 'two', paths: ['/two'] },
  { name: 'three', paths: ['/three'] }
]

t.test('of three backends, one that hangs uses up its own connections and queue only', async (t) => {
  const gateway = await startUpstreams(t, ROWS, { env: { BACKEND_ANONYMOUS_PERCENT: '100' } })
  const { one } = gateway.backends
  if (one === undefined) throw new Error('no backend')
  let hanging = 0
  one.respond = () => {
    hanging += 1
  }
  // Two connections, a queue of three, and one request too many.
  const waiting = Array.from({ length: 5 }, () => gateway.send('/one/x').catch(() => null))
  await eventually(() => hanging === 2)
  await eventually(async () => /gateway_in_flight\{upstream="one"\} 5/.test((await gateway.send('/metrics')).body))
  const overloaded = await gateway.send('/one/x')
  t.strictSame([overloaded.status, overloaded.code], [503, 'OVERLOADED'])
  for (let count = 0; count < 50; count += 1) {
    for (const path of ['/two/x', '/three/x', '/api/zones']) t.equal((await gateway.send(path)).status, 200)
  }
  t.equal((await gateway.send('/api/health/ready')).status, 200)
  const { body } = await gateway.send('/metrics')
  for (const [name, count] of [
    ['one', 5],
    ['two', 0],
    ['three', 0],
    ['default', 0]
  ])
    t.match(body, `gateway_in_flight{upstream="${name}"} ${count}`)
  t.match(body, 'gateway_backend_duration_seconds_count{upstream="two",route="/two/*"} 50')
  t.match(body, 'gateway_backend_duration_seconds_count{upstream="default",route="/api/zones"} 50')
  gateway.gateway.app.server.closeAllConnections()
  await Promise.all(waiting)
})

t.test('each row has its own time limit, errors and readiness', async (t) => {
  const rows = [
    { name: 'slow', paths: ['/slow'], timeout_ms: 50 },
    { name: 'gone', paths: ['/gone'], url: `http://127.0.0.1:${await freePort()}` },
    { name: 'fine', paths: ['/fine/x'], strip_prefix: '/fine' }
  ]
  const gateway = await startUpstreams(t, rows)
  const { slow } = gateway.backends
  if (slow !== undefined) slow.respond = () => undefined
  t.equal((await gateway.send('/slow/x')).code, 'BACKEND_TIMEOUT')
  t.equal((await gateway.send('/gone/x')).code, 'BACKEND_UNREACHABLE')
  const { body } = await gateway.send('/metrics')
  t.match(body, 'gateway_backend_errors_total{upstream="slow",code="UND_ERR_HEADERS_TIMEOUT"} 1')
  t.match(body, 'gateway_backend_errors_total{upstream="gone",code="ECONNREFUSED"} 1')
  t.match(body, 'gateway_backend_errors_total{upstream="default",code="ECONNREFUSED"} 0')

  const ready = async (query: string) => {
    const response = await gateway.send(`/api/health/ready${query}`)
    return [response.status, response.json()]
  }
  t.match(await ready(''), [200, { status: 'ready' }])
  t.match(await ready('?upstream=default'), [200, { status: 'ready' }])
  t.match(await ready('?upstream=fine'), [200, { status: 'ready', backend: { status: 'up' } }])
  t.match(await ready('?upstream=gone'), [
    503,
    { status: 'unavailable', backend: { status: 'down', reason: 'refused' } }
  ])
  t.match(await ready('?upstream=other'), [404, { error: { code: 'NOT_FOUND' } }])
  t.strictSame(
    gateway.backends.fine?.requests.map(({ url }) => url),
    ['/x']
  )
})

t.test('without rows the metrics of the backend have no label upstream', async (t) => {
  const gateway = await startGateway(t)
  await gateway.send('/api/zones')
  const { body } = await gateway.send('/metrics')
  t.match(body, /^gateway_in_flight 0$/m)
  t.match(body, 'gateway_backend_duration_seconds_count{route="/api/zones"} 1')
  t.notMatch(body, 'upstream=')
  t.equal((await gateway.send('/api/health/ready?upstream=other')).status, 404)
})

t.test('a backend that leads back to the gateway is 508 LOOP_DETECTED after one round', async (t) => {
  const link = await startTcpProxy(t, 1)
  const rows = [{ name: 'loop', url: `http://127.0.0.1:${link.port}`, paths: ['/loop'] }]
  const gateway = await startUpstreams(t, rows)
  link.redirect(Number(new URL(gateway.url).port))
  const response = await gateway.send('/loop/x')
  t.equal(response.status, 508)
  t.match(response.json(), { error: { code: 'LOOP_DETECTED' } })
  t.equal(gateway.logs.filter(({ path }) => path === '/loop/x').length, 2)
})

t.test('a hundred rows for hosts share a path', async (t) => {
  const rows = Array.from({ length: 100 }, (_, index) => ({
    name: `row-${index}`,
    url: 'http://127.0.0.1:9',
    hosts: [`host-${index}.example`],
    paths: ['/']
  }))
  const gateway = await startUpstreams(t, rows)
  t.equal((await gateway.send('/x', { headers: { host: 'host-99.example' } })).code, 'BACKEND_UNREACHABLE')
  t.equal((await gateway.send('/x', { headers: { host: 'host-100.example' } })).status, 404)
})
