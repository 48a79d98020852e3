import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { ChaosOptions } from '../../helper/chaos-command.js'
import type { Teardown } from '../../helper/child.js'
import { eventually } from '../../helper/eventually.js'
import { send } from '../../helper/http.js'
import { startProgram } from '../../helper/program.js'
import { API_KEY, type ConfigFile, HMAC_SECRET } from '../../helper/relay-rules.js'
import { Random } from '../soak/random.js'
import { ChaosBackend, leaseOf } from './backend.js'
import { Visitor } from './visitor.js'

const WORKERS = 2
const MAX_IN_FLIGHT = 64
const CHANNELS = Array.from({ length: 20 }, (_, index) => `room:${index}`)
/** Failed refreshes are repeated after a minute, and leases end before. */
const SETTLE_MS = 180_000
const ACT_MS = 20

const relayFile = (backend: ChaosBackend): ConfigFile => {
  const to = (event: string) => ({
    endpoint: backend.events.endpoint(event),
    timeout: '1s',
    emulated_headers: ['X-User'],
    max_inflight: MAX_IN_FLIGHT
  })
  return {
    client: { proxy: { connect: { enabled: true, ...to('connect') }, refresh: { enabled: true, ...to('refresh') } } },
    channel: {
      proxy: { subscribe: to('subscribe'), sub_refresh: to('sub_refresh'), publish: to('publish') },
      namespaces: [
        {
          name: 'room',
          presence: true,
          subscribe_proxy_enabled: true,
          sub_refresh_proxy_enabled: true,
          publish_proxy_enabled: true
        }
      ]
    },
    rpc: { proxy: to('rpc'), without_namespace: { proxy_enabled: true } }
  }
}

/** Runs clients against a failing backend, and returns what is wrong at the end. */
export const proxyChaos = async (
  { seconds, clients, seed }: ChaosOptions,
  { t, folder, print }: { t: Teardown; folder: string; print: (line: string) => void }
): Promise<readonly string[]> => {
  const random = new Random(seed)
  const backend = new ChaosBackend(random.fork())
  await backend.events.start()
  t.teardown(() => backend.events.stop())
  const config = join(folder, 'relay.json')
  writeFileSync(config, JSON.stringify(relayFile(backend)))
  const program = await startProgram(t, 'dist/src/relay/main.js', {
    RELAY_PORT: '0',
    RELAY_WORKERS: String(WORKERS),
    RELAY_CONFIG: config,
    REALTIME_HMAC_SECRET: HMAC_SECRET,
    REALTIME_API_KEY: API_KEY
  })
  const [url = ''] = /http:[^"]+/.exec(await program.waitForLine('listening at')) ?? []
  const users = Array.from({ length: clients }, (_, index) => `u${index}`)
  const visitors = users.map((user) => new Visitor(user, Number(new URL(url).port), CHANNELS, random.fork()))
  t.teardown(() => {
    for (const visitor of visitors) visitor.close()
  })

  await disturb(backend, visitors, users, seconds, random)
  const figures = [...backend.answered].map(([event, count]) => `${event} ${count}`).join(', ')
  print(`faults: ${[...backend.faults].map(([fault, count]) => `${fault} ${count}`).join(', ')}`)
  print(`answers: ${figures}; at most ${backend.events.maxConcurrency} requests at once`)

  revoke(backend, visitors, random)
  const startedAt = performance.now()
  const violations = await settle(backend, visitors)
  print(`settled after ${Math.round((performance.now() - startedAt) / 1000)} s`)
  violations.push(...visitors.flatMap(({ mixedUp }) => mixedUp))
  violations.push(...(await relayViolations(url, backend, visitors)))
  const present = visitors.filter(({ isConnected }) => isConnected).length
  print(
    `${present} of ${clients} connected, ${backend.banned.size} banned, ${backend.denied.size} denied subscriptions`
  )
  return violations
}

/** Clients come and go while the backend fails and changes its rules. */
const disturb = async (
  backend: ChaosBackend,
  visitors: readonly Visitor[],
  users: readonly string[],
  seconds: number,
  random: Random
): Promise<void> => {
  const endsAt = performance.now() + seconds * 1000
  const isOver = (): boolean => performance.now() >= endsAt
  const failing = (async () => {
    while (!isOver()) {
      await delay(random.whole(500, 4000))
      if (!isOver()) await backend.fail()
    }
  })()
  const actsPerStep = Math.max(1, Math.round((visitors.length * ACT_MS) / 2000))
  while (!isOver()) {
    for (const visitor of random.some(visitors, actsPerStep)) visitor.act()
    if (random.fraction() < 0.2) backend.changeMind(users, CHANNELS)
    await delay(ACT_MS)
  }
  await failing
}

/** A last change of the rules that concerns connections and subscriptions in use: the relay must notice it by itself. */
const revoke = (backend: ChaosBackend, visitors: readonly Visitor[], random: Random): void => {
  for (const visitor of visitors) {
    if (visitor.isConnected && random.fraction() < 0.1) backend.banned.add(visitor.user)
    for (const channel of CHANNELS) {
      if (visitor.isSubscribedTo(channel) && random.fraction() < 0.2) backend.denied.add(leaseOf(visitor.user, channel))
    }
  }
}

/** Waits until every client is in the state that the rules allow. */
const settle = async (backend: ChaosBackend, visitors: readonly Visitor[]): Promise<string[]> => {
  for (const visitor of visitors) visitor.retry()
  const violations = (): string[] => visitors.flatMap((visitor) => visitor.violation(backend) ?? [])
  try {
    await eventually(() => violations().length === 0, { deadlineMs: SETTLE_MS })
    return []
  } catch {
    return violations()
  }
}

/** What the relay itself knows must agree: no connection or subscription without its client, no call under way. */
const relayViolations = async (
  url: string,
  backend: ChaosBackend,
  visitors: readonly Visitor[]
): Promise<readonly string[]> => {
  const violations: string[] = []
  const api = async (method: string, request: unknown) => {
    const headers = { 'x-api-key': API_KEY }
    const { body } = await send(url, `/api/${method}`, { method: 'POST', body: JSON.stringify(request), headers })
    return JSON.parse(body).result
  }
  const { nodes }: { nodes: readonly { num_clients: number }[] } = await api('info', {})
  const connected = nodes.reduce((sum, { num_clients: count }) => sum + count, 0)
  const expected = visitors.filter(({ isConnected }) => isConnected).length
  if (connected !== expected) violations.push(`the relay has ${connected} connections instead of ${expected}`)
  for (const channel of CHANNELS) {
    const { presence }: { presence: Record<string, { user: string }> } = await api('presence', { channel })
    const present = Object.values(presence).map(({ user }) => user)
    const subscribed = visitors.filter((visitor) => visitor.isSubscribedTo(channel)).map(({ user }) => user)
    if (present.sort().join() !== subscribed.sort().join())
      violations.push(`${channel} has the users ${present} instead of ${subscribed}`)
    const intruders = present.filter((user) => !backend.maySubscribe(user, channel) || !backend.mayConnect(user))
    if (intruders.length > 0) violations.push(`${channel} has users without permission: ${intruders}`)
  }
  const { body: metrics } = await send(url, '/metrics')
  for (const line of metrics.split('\n')) {
    const value = Number(line.split(' ').at(-1))
    if (/^(?:centrifugo_proxy_inflight_requests|relay_unexpected_errors_total)/.test(line) && value !== 0)
      violations.push(line)
  }
  const most = MAX_IN_FLIGHT * WORKERS * 6
  if (backend.events.maxConcurrency > most) violations.push(`${backend.events.maxConcurrency} requests at once`)
  return violations
}
