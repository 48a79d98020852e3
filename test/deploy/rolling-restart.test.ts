import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { WebSocket } from 'ws'
import { environment } from '../helper/environment.js'
import { eventually } from '../helper/eventually.js'
import { freePort } from '../helper/free-port.js'
import { browserHeaders } from '../helper/gateway.js'
import { send } from '../helper/http.js'
import { startBackend } from '../helper/recording-backend.js'
import { startRedis } from '../helper/redis.js'
import { collect, event } from '../helper/relay.js'
import { APP } from './certificate.js'
import { ExternalClient } from './external-client.js'
import { Load } from './load.js'
import { type Running, runGateway, runRelay } from './programs.js'
import { type StartProxy, startCaddy, startNginx, type Upstreams } from './proxies.js'

/** A program that can be restarted on the same port. */
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

/** Alternates reads and mutations, each on a new connection. */
const browsing = (external: ExternalClient): Load =>
  new Load(3, async (count) => {
    const headers = { ...browserHeaders(), 'content-type': 'application/json' }
    const message = count % 2 === 0 ? { headers } : { method: 'POST', headers, body: '{}' }
    const { status } = await external.send(APP, '/api/emergency/trigger', message)
    return status === 200 ? undefined : `${status}`
  })

/** Publishes consecutive numbers. */
const publishing = (external: ExternalClient, channel: string): Load =>
  new Load(1, async (count) => {
    const { status, body } = await external.publish(channel, count, `publication ${count}`)
    return status === 200 && body.startsWith('{"result"') ? undefined : `${status} ${body}`
  })

const CLIENTS = ['127.0.0.21', '127.0.0.22', '127.0.0.23', '127.0.0.24', '127.0.0.25', '127.0.0.26']

const startEverything = async (t: Test, { startProxy, shutdownDelayMs }: Procedure) => {
  t.testdir()
  const [backend, redis] = [await startBackend(t), await startRedis(t)]
  const engine = { RELAY_ENGINE: 'redis', REDIS_URL: redis.url }
  const delay = { SHUTDOWN_DELAY_MS: String(shutdownDelayMs) }
  const gateway = (GATEWAY_PORT: string) => runGateway(t, backend.url, { GATEWAY_PORT, ...delay })
  const relay = (RELAY_PORT: string) => runRelay(t, {}, { RELAY_PORT, ...engine, ...delay })
  const two = (probe: string, start: (port: string) => Promise<Running>) =>
    Promise.all([instance(probe, start), instance(probe, start)])
  const [gateways, relays] = await Promise.all([two('/api/health/ready', gateway), two('/health', relay)])
  await Promise.all([...gateways, ...relays].map(isReady))

  const upstreams = (removed?: Instance): Upstreams => ({
    gateways: gateways.filter((one) => one !== removed).map(({ address }) => address),
    relays: relays.filter((one) => one !== removed).map(({ address }) => address)
  })
  return { instances: [...gateways, ...relays], upstreams, proxy: await startProxy(t, upstreams()) }
}

/** A subscriber with the delays of the official client, and the duration of each of its reconnects. */
const subscriber = async (t: Test, external: ExternalClient, from: string) => {
  const sockets: WebSocket[] = []
  const client = external.client(t, 'websocket', { from, reconnectsFast: false, onSocket: (one) => sockets.push(one) })
  const reconnectsMs: number[] = []
  let since: number | null = null
  client.on('connecting', ({ code }) => {
    // Code 0 is the first connect.
    if (code !== 0) since ??= performance.now()
  })
  client.on('connected', () => {
    if (since !== null) reconnectsMs.push(performance.now() - since)
    since = null
  })
  const subscription = client.newSubscription('floor:7')
  const received = collect(subscription)
  subscription.subscribe()
  client.connect()
  await event(subscription, 'subscribed')
  return { received, reconnectsMs }
}

const MAX_RECONNECT_MS = 2000
/** Until Caddy has checked a restarted instance: health_interval and health_timeout. */
const HEALTH_CHECK_MS = 3000

type Everything = Awaited<ReturnType<typeof startEverything>>

interface Procedure {
  /** Whether the result depends on the speed of the machine, so that only the long form uses it. */
  readonly isTimed: boolean
  readonly startProxy: StartProxy
  readonly shutdownDelayMs: number
  /** The steps of docs/how-to/upgrade.md around the restart of an instance. */
  readonly before: (one: Instance, everything: Everything) => Promise<void>
  readonly after: (everything: Everything) => Promise<void>
}

const PROCEDURES: Readonly<Record<string, Procedure>> = {
  nginx: {
    isTimed: false,
    startProxy: startNginx,
    shutdownDelayMs: 0,
    before: (one, { proxy, upstreams }) => proxy.reload(upstreams(one)),
    after: ({ proxy, upstreams }) => proxy.reload(upstreams())
  },
  // Its health checks remove and add the instance. On a busy machine they time out for the other instance too.
  Caddy: {
    isTimed: true,
    startProxy: startCaddy,
    shutdownDelayMs: 5000,
    before: async () => undefined,
    after: () => delay(HEALTH_CHECK_MS)
  }
}

for (const [name, procedure] of Object.entries(PROCEDURES)) {
  const { isTimed, before, after } = procedure
  if (isTimed && environment.restartSeconds === 0) continue
  t.test(`a rolling restart behind ${name} under load loses no request and no publication`, async (t) => {
    const everything = await startEverything(t, procedure)
    const external = new ExternalClient(everything.proxy)
    const clients = await Promise.all(CLIENTS.map((from) => subscriber(t, external, from)))
    const [requests, publications] = [browsing(external), publishing(external, 'floor:7')]

    let restarts = 0
    const end = performance.now() + environment.restartSeconds * 1000
    do {
      for (const one of everything.instances) {
        await before(one, everything)
        await Promise.all([requests.settled(), publications.settled()])
        one.running.program.signal('SIGTERM')
        t.same(await one.running.program.exited, { code: 0, signal: null }, `${one.address} shuts down`)
        one.running = await one.start()
        await isReady(one)
        await after(everything)
        restarts += 1
      }
    } while (performance.now() < end)
    await Promise.all([requests.stop(), publications.stop()])
    await Promise.all(clients.map(({ received }) => received.until(({ length }) => length >= publications.done)))

    t.same(requests.errors, [], `none of ${requests.done} requests is dropped`)
    t.same(publications.errors, [], `none of ${publications.done} publications is rejected`)
    const all = Array.from({ length: publications.done }, (_, index) => index + 1)
    for (const { received, reconnectsMs } of clients) {
      t.same(received.data, all, 'every publication was received once, in order')
      t.ok(reconnectsMs.length > 0, 'the client had to reconnect')
    }
    const slowest = Math.round(Math.max(...clients.flatMap(({ reconnectsMs }) => reconnectsMs)))
    t.comment(
      `${restarts} restarts, ${requests.done} requests, ${publications.done} publications, slowest reconnect ${slowest} ms`
    )
    // Only the long form is for a machine that does nothing else.
    if (environment.restartSeconds > 0) t.ok(slowest <= MAX_RECONNECT_MS, `reconnects take ${slowest} ms at most`)
  })
}
