import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type ConnectionOptions, connect } from 'node:tls'
import t, { type Test } from 'tap'
import { eventually } from '../../helper/eventually.js'
import { responseOf } from '../../helper/exact-http.js'
import { freePort } from '../../helper/free-port.js'
import { type RecordingBackend, startBackend } from '../../helper/recording-backend.js'
import { startTool } from './tool.js'

const HOSTS = { page: 'gatehouse.localhost', realtime: 'realtime.gatehouse.localhost' } as const
type Host = keyof typeof HOSTS

const canConnect = async (options: ConnectionOptions): Promise<boolean> => {
  const socket = connect({ host: '127.0.0.1', ...options })
  await once(socket, 'secureConnect')
  socket.destroy()
  return true
}

/** The shipped Caddyfile of docker-compose.yml, in front of servers that record their requests. */
const startProxy = async (t: Test, { hasIngest }: { readonly hasIngest: boolean }) => {
  const folder = t.testdir()
  const upstreams = { gateway: await startBackend(t), relay: await startBackend(t), ingest: await startBackend(t) }
  const [port, plainPort, adminPort] = [await freePort(), await freePort(), await freePort()]
  const host = ({ url }: RecordingBackend): string => new URL(url).host
  const caddy = await startTool(t, 'caddy', ['run', '--config', 'deploy/compose/Caddyfile'], {
    ...{ HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder, CADDY_ADMIN: `127.0.0.1:${adminPort}` },
    GATEHOUSE_HOST: `${HOSTS.page}:${port}`,
    GATEHOUSE_REALTIME_HOST: `${HOSTS.realtime}:${port}`,
    GATEHOUSE_HTTP_PORT: String(plainPort),
    GATEWAY_UPSTREAM: host(upstreams.gateway),
    RELAY_UPSTREAM: host(upstreams.relay),
    INGEST_UPSTREAM: hasIngest ? host(upstreams.ingest) : ''
  })
  await caddy.waitForLine('serving initial configuration')
  for (const name of Object.values(HOSTS)) await caddy.waitForLine(new RegExp(`certificate obtained.*"${name}"`))
  const ca = readFileSync(join(folder, 'caddy/pki/authorities/local/root.crt'), 'utf8')
  // Caddy logs that it has a certificate before it presents it; handshakes in between fail.
  for (const servername of Object.values(HOSTS)) await eventually(() => canConnect({ port, servername, ca }))

  /** Sends a request through the proxy. Returns the upstream that received it, if any. */
  const send = async (target: Host, path: string, headers: Readonly<Record<string, string>> = {}) => {
    for (const { requests } of Object.values(upstreams)) requests.length = 0
    const outgoing = request({
      ...{ host: '127.0.0.1', port, servername: HOSTS[target], ca, agent: false, path },
      headers: { host: `${HOSTS[target]}:${port}`, ...headers }
    })
    outgoing.end()
    const response = await responseOf(outgoing)
    await text(response)
    const [name = null, backend] = Object.entries(upstreams).find(([, { requests }]) => requests.length > 0) ?? []
    return { status: response.statusCode, upstream: name, forwarded: backend?.requests[0] }
  }
  return { send, caddy }
}

const { send } = await startProxy(t, { hasIngest: true })

const TO_RELAY = [
  '/connection/websocket',
  '/connection/http_stream',
  '/connection/sse',
  '/connection/uni_sse',
  '/emulation'
]

const ROUTES: readonly (readonly [Host, string, 'gateway' | 'relay' | 'ingest' | null])[] = [
  ...['/', '/live', '/api', '/api/zones?floor=2', '/admin', '/health', '/connection'].map(
    (path) => ['page', path, 'gateway'] as const
  ),
  ...TO_RELAY.map((path) => ['page', path, 'relay'] as const),
  ...[...TO_RELAY, '/api', '/api/publish', '/admin', '/admin/', '/admin/assets/index.js'].map(
    (path) => ['realtime', path, 'relay'] as const
  ),
  ...[
    '/',
    '/ingest/v1/batch?x=%2F1',
    '/connection',
    '/connections/websocket',
    '/apis',
    '/administration',
    '/health'
  ].map((path) => ['realtime', path, 'ingest'] as const),
  ...['/metrics', '/metrics?x=1', '/metrics/', '/%6detrics', '//metrics', '/./metrics', '/METRICS'].flatMap((path) => [
    ['page', path, null] as const,
    ['realtime', path, null] as const
  ])
]

for (const [target, path, to] of ROUTES) {
  t.test(`${path} of the ${target} host is ${to === null ? 'not forwarded' : `forwarded to the ${to}`}`, async (t) => {
    const { status, upstream, forwarded } = await send(target, path)

    t.equal(upstream, to)
    if (to === null) t.equal(status, 404)
    else t.equal(forwarded?.url, path, 'unchanged')
  })
}

t.test('without INGEST_UPSTREAM, other paths of the realtime host are not forwarded', async (t) => {
  const { send } = await startProxy(t, { hasIngest: false })
  for (const path of ['/', '/ingest/v1/batch', '/health', '/apis'])
    t.match(await send('realtime', path), { status: 404, upstream: null }, path)
  t.match(await send('realtime', '/connection/sse'), { upstream: 'relay' })
})

t.test('Caddy replaces forwarding headers of the client', async (t) => {
  for (const [target, path] of [
    ['page', '/api/zones'],
    ['page', '/connection/sse'],
    ['realtime', '/api/publish']
  ] as const) {
    const { forwarded } = await send(target, path, { 'x-forwarded-for': '203.0.113.9', forwarded: 'for=203.0.113.9' })
    t.match(forwarded?.headers, { 'x-forwarded-for': '127.0.0.1', 'x-forwarded-proto': 'https' }, path)
    t.equal(forwarded?.headers.forwarded, undefined)
  }
})
