import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import type { WebSocket } from 'ws'
import { ROOT } from '../../scripts/lib/root.js'
import { urlOf } from '../helper/address.js'
import { environment } from '../helper/environment.js'
import { freePort } from '../helper/free-port.js'
import { browserHeaders } from '../helper/gateway.js'
import { startBackend } from '../helper/recording-backend.js'
import { startRedis } from '../helper/redis.js'
import { collect, event } from '../helper/relay.js'
import { APP } from './certificate.js'
import { ExternalClient } from './external-client.js'
import { Load } from './load.js'
import { type Running, runGateway, runRelay } from './programs.js'
import { type StartProxy, startCaddy, startNginx } from './proxies.js'
import { runTool, toolOnPath } from './tool.js'

/** A program that can be restarted on the same port. */
interface Instance {
  /** As gatehouse-restart names it, such as gateway@3000. */
  readonly name: string
  readonly address: string
  restart(): Promise<void>
}

const instance = async (t: Test, program: string, startOn: (port: string) => Promise<Running>): Promise<Instance> => {
  const port = String(await freePort())
  let running = await startOn(port)
  const name = `${program}@${port}`
  const restart = async (): Promise<void> => {
    running.program.signal('SIGTERM')
    t.same(await running.program.exited, { code: 0, signal: null }, `${name} shuts down`)
    running = await startOn(port)
  }
  return { name, address: running.address, restart }
}

/** Alternates reads and write requests, each on a new connection. */
const browsing = (external: ExternalClient): Load =>
  new Load(3, async (count) => {
    const headers = { ...browserHeaders(), 'content-type': 'application/json' }
    const message = count % 2 === 0 ? { headers } : { method: 'POST', headers, body: '{"type":"fire"}' }
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
  const two = (program: string, start: (port: string) => Promise<Running>) =>
    Promise.all([instance(t, program, start), instance(t, program, start)])
  const [gateways, relays] = await Promise.all([two('gateway', gateway), two('relay', relay)])
  const addresses = (instances: readonly Instance[]): string[] => instances.map(({ address }) => address)
  const proxy = await startProxy(t, { gateways: addresses(gateways), relays: addresses(relays) })
  return { instances: [...gateways, ...relays], proxy }
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

interface Procedure {
  /** Whether the result depends on the speed of the machine, so that only the long form uses it. */
  readonly isTimed: boolean
  readonly startProxy: StartProxy
  readonly shutdownDelayMs: number
}

const PROCEDURES: Readonly<Record<string, Procedure>> = {
  nginx: { isTimed: false, startProxy: startNginx, shutdownDelayMs: 0 },
  // Its health checks remove and add the instance. On a busy machine they time out for the other instance too.
  Caddy: { isTimed: true, startProxy: startCaddy, shutdownDelayMs: 5000 }
}

/** Restarts all instances with the shipped script, whose `systemctl` asks this process to restart an instance. */
const restartAll = async (t: Test, { instances, proxy: { folder } }: Everything, shutdownDelayMs: number) => {
  const server = createServer(async (request, response) => {
    const unit = await text(request)
    const one = instances.find(({ name }) => unit === `restart gatehouse-${name}`)
    await one?.restart()
    response.writeHead(one === undefined ? 400 : 200).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const bin = join(folder, 'bin')
  mkdirSync(bin, { recursive: true })
  const command = (name: string, line: string): void =>
    writeFileSync(join(bin, name), `#!/bin/sh\nexec ${line}\n`, { mode: 0o755 })
  command('systemctl', `curl --silent --fail --data "$*" ${urlOf(server)}`)
  command('nginx', `'${toolOnPath('nginx')}' -c '${folder}/nginx.conf' -e stderr "$@"`)
  for (const program of ['gateway', 'relay'])
    writeFileSync(join(folder, `${program}.env`), `SHUTDOWN_DELAY_MS=${shutdownDelayMs}\n`)
  const args = [join(ROOT, 'deploy/systemd/gatehouse-restart'), ...instances.map(({ name }) => name)]
  await runTool(t, 'sh', args, {
    PATH: `${bin}:${environment.path}`,
    GATEHOUSE_UPSTREAMS: join(folder, 'gatehouse-upstreams.conf'),
    GATEHOUSE_NGINX_PID: join(folder, 'nginx.pid'),
    GATEHOUSE_SETTINGS: folder,
    ...(environment.restartSeconds === 0 && { GATEHOUSE_DRAIN_SECONDS: '1' })
  })
}

type Everything = Awaited<ReturnType<typeof startEverything>>

for (const [name, procedure] of Object.entries(PROCEDURES)) {
  const { isTimed, shutdownDelayMs } = procedure
  if (isTimed && environment.restartSeconds === 0) continue
  t.test(`a rolling restart behind ${name} under load loses no request and no publication`, async (t) => {
    const everything = await startEverything(t, procedure)
    const external = new ExternalClient(everything.proxy)
    const clients = await Promise.all(CLIENTS.map((from) => subscriber(t, external, from)))
    const [requests, publications] = [browsing(external), publishing(external, 'floor:7')]

    let restarts = 0
    const end = performance.now() + environment.restartSeconds * 1000
    do {
      await restartAll(t, everything, shutdownDelayMs)
      restarts += everything.instances.length
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
