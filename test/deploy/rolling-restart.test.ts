import t, { type Test } from 'tap'
import { eventually } from '../helper/eventually.js'
import { freePort } from '../helper/free-port.js'
import { browserHeaders } from '../helper/gateway.js'
import { send } from '../helper/http.js'
import { startBackend } from '../helper/recording-backend.js'
import { startRedis } from '../helper/redis.js'
import { APP } from './certificate.js'
import { listen } from './listeners.js'
import { Load } from './load.js'
import { Outside } from './outside.js'
import { type Running, runGateway, runRelay } from './programs.js'
import { startNginx } from './proxies.js'

/** A program that can be started again on the port that it has. */
interface Instance {
  readonly address: string
  readonly probe: string
  running: Running
  start(): Promise<Running>
}

const instance = async (probe: string, startOn: (port: string) => Promise<Running>): Promise<Instance> => {
  const port = String(await freePort())
  const start = (): Promise<Running> => startOn(port)
  const running = await start()
  return { address: running.address, probe, running, start }
}

const isReady = async ({ running, probe }: Instance): Promise<void> => {
  await eventually(async () => (await send(running.url, probe)).status === 200, { label: `200 from ${probe}` })
}

/** Reads and mutations in turn, each on a connection of its own. */
const browsing = (outside: Outside): Load =>
  new Load(3, async (count) => {
    const headers = { ...browserHeaders(), 'content-type': 'application/json' }
    const message = count % 2 === 0 ? { headers } : { method: 'POST', headers, body: '{}' }
    const { status } = await outside.send(APP, '/api/emergency/trigger', message)
    return status === 200 ? undefined : `${status}`
  })

/** One number after the other. */
const publishing = (outside: Outside, channel: string): Load =>
  new Load(1, async (count) => {
    const { status, body } = await outside.publish(channel, count)
    return status === 200 && body.startsWith('{"result"') ? undefined : `${status} ${body}`
  })

const CLIENTS = ['127.0.0.21', '127.0.0.22', '127.0.0.23', '127.0.0.24', '127.0.0.25', '127.0.0.26']

const startEverything = async (t: Test) => {
  t.testdir()
  const [backend, redis] = [await startBackend(t), await startRedis(t)]
  const engine = { RELAY_ENGINE: 'redis', REDIS_URL: redis.url }
  const gateway = (GATEWAY_PORT: string) => runGateway(t, backend.url, { GATEWAY_PORT })
  const relay = (RELAY_PORT: string) => runRelay(t, {}, { RELAY_PORT, ...engine })
  const two = (probe: string, start: (port: string) => Promise<Running>) =>
    Promise.all([instance(probe, start), instance(probe, start)])
  const [gateways, relays] = await Promise.all([two('/api/health/ready', gateway), two('/health', relay)])
  await Promise.all([...gateways, ...relays].map(isReady))

  const lines = (instances: readonly Instance[], leaving?: Instance): string[] =>
    instances.map((one) => (one === leaving ? `${one.address} down` : one.address))
  const behind = (leaving?: Instance) => ({
    gateways: lines(gateways, leaving),
    relays: lines(relays, leaving),
    ingest: new URL(backend.url).host
  })
  return { instances: [...gateways, ...relays], behind, proxy: await startNginx(t, behind()) }
}

t.test('each of two gateways and two relays is restarted in turn, under load', async (t) => {
  const { instances, behind, proxy } = await startEverything(t)
  const outside = new Outside(proxy)
  const clients = await Promise.all(CLIENTS.map((from) => listen(t, outside, 'websocket', 'floor:7', from)))
  const [requests, publications] = [browsing(outside), publishing(outside, 'floor:7')]

  for (const one of instances) {
    // As docs/how-to/upgrade.md says: out of the proxy, away when nothing is left of before, back, into the proxy.
    await proxy.reload(behind(one))
    await Promise.all([requests.settled(), publications.settled()])
    one.running.program.signal('SIGTERM')
    t.same(await one.running.program.exited, { code: 0, signal: null }, `${one.address} leaves`)
    one.running = await one.start()
    await isReady(one)
    await proxy.reload(behind())
  }
  await Promise.all([requests.stop(), publications.stop()])
  await Promise.all(clients.map(({ received }) => received.until(({ length }) => length >= publications.done)))

  t.same(requests.faults, [], `none of ${requests.done} requests is dropped`)
  t.same(publications.faults, [], `none of ${publications.done} publications is refused`)
  const all = Array.from({ length: publications.done }, (_, index) => index + 1)
  for (const { received, sockets } of clients) {
    t.same(received.data, all, 'every publication has come once, in order')
    t.ok(sockets.length > 1, 'although the relay has left')
  }
})
