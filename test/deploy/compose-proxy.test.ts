import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { freePort } from '../helper/free-port.js'
import { type RecordingBackend, startBackend } from '../helper/recording-backend.js'
import { startTool } from './tool.js'

const HOSTS = { page: 'gatehouse.localhost', realtime: 'realtime.gatehouse.localhost' } as const
type Host = keyof typeof HOSTS

/** The Caddy of docker-compose.yml as it is shipped, told where its neighbours are; they say what reached them. */
const startProxy = async () => {
  const folder = t.testdir()
  const behind = { gateway: await startBackend(t), relay: await startBackend(t), ingest: await startBackend(t) }
  const [port, plainPort, adminPort] = [await freePort(), await freePort(), await freePort()]
  const host = ({ url }: RecordingBackend): string => new URL(url).host
  const caddy = await startTool(t, 'caddy', ['run', '--config', 'deploy/compose/Caddyfile'], {
    ...{ HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder, CADDY_ADMIN: `127.0.0.1:${adminPort}` },
    GATEHOUSE_HOST: `${HOSTS.page}:${port}`,
    GATEHOUSE_REALTIME_HOST: `${HOSTS.realtime}:${port}`,
    GATEHOUSE_HTTP_PORT: String(plainPort),
    GATEWAY_UPSTREAM: host(behind.gateway),
    RELAY_UPSTREAM: host(behind.relay),
    INGEST_UPSTREAM: host(behind.ingest)
  })
  await caddy.waitForLine('serving initial configuration', 60_000)
  for (const name of Object.values(HOSTS))
    await caddy.waitForLine(new RegExp(`certificate obtained.*"${name}"`), 60_000)
  const ca = readFileSync(join(folder, 'caddy/pki/authorities/local/root.crt'), 'utf8')

  /** Who answered, and what reached them. */
  const ask = async (where: Host, path: string, headers: Readonly<Record<string, string>> = {}) => {
    for (const { requests } of Object.values(behind)) requests.length = 0
    const asking = request({
      ...{ host: '127.0.0.1', port, servername: HOSTS[where], ca, agent: false, path },
      headers: { host: `${HOSTS[where]}:${port}`, ...headers }
    })
    asking.end()
    const [answer] = await once(asking, 'response')
    await text(answer)
    const [name = null, backend] = Object.entries(behind).find(([, { requests }]) => requests.length > 0) ?? []
    return { status: answer.statusCode as number, by: name, got: backend?.requests[0] }
  }
  return { ask, caddy }
}

const { ask } = await startProxy()

const TO_RELAY = ['/connection/websocket', '/connection/http_stream', '/connection/sse', '/emulation']

const WAYS: readonly (readonly [Host, string, 'gateway' | 'relay' | 'ingest' | null])[] = [
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

for (const [where, path, to] of WAYS) {
  t.test(`${where}: ${path} goes to ${to ?? 'nobody'}`, async (t) => {
    const { status, by, got } = await ask(where, path)

    t.equal(by, to)
    if (to === null) t.equal(status, 404)
    else t.equal(got?.url, path, 'unchanged')
  })
}

t.test('everybody behind is told who the client is, whatever the client says', async (t) => {
  for (const [where, path] of [
    ['page', '/api/zones'],
    ['page', '/connection/sse'],
    ['realtime', '/api/publish']
  ] as const) {
    const { got } = await ask(where, path, { 'x-forwarded-for': '203.0.113.9', forwarded: 'for=203.0.113.9' })
    t.match(got?.headers, { 'x-forwarded-for': '127.0.0.1', 'x-forwarded-proto': 'https' }, path)
    t.equal(got?.headers.forwarded, undefined)
  }
})
