import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Child } from '../../helper/child.js'
import { startEventBackend } from '../../helper/event-backend.js'
import { eventually } from '../../helper/eventually.js'
import { startProgram } from '../../helper/program.js'
import { connectedClient } from '../../helper/raw-client.js'
import { startRedis } from '../../helper/redis.js'
import { startRelay } from '../../helper/relay.js'
import { API_KEY, HMAC_SECRET } from '../../helper/relay-rules.js'
import { startWorkers } from '../../helper/relay-workers.js'
import { eventsOf } from '../../helper/webhook-events.js'

const backend = await startEventBackend(t)

const fileOf = (endpoint: string) => ({
  channel: {
    proxy: { state: { endpoint, timeout: '5s' } },
    namespaces: [{ name: 'room', presence: true, allow_subscribe_for_client: true, state_proxy_enabled: true }]
  },
  // The lease of a node that is not scheduled for a second must not end.
  engine: { redis: { presence_ttl: '5s', channel_state: { vacated_event_delay: '100ms' } } }
})

/** The events about a channel that the backend has received, in this order. An event of a killed process may be repeated. */
const told = (event: string, channel: string): readonly string[] => {
  const events = eventsOf(backend, event).filter((each) => each.channel === channel)
  return [...new Map(events.map(({ id, type }) => [id, type])).values()]
}

const until = (event: string, channel: string, types: readonly string[]): Promise<unknown> =>
  eventually(() => JSON.stringify(told(event, channel)) === JSON.stringify(types), {
    label: `${channel} ${types.join(', ')}`
  })

const subscribed = async (t: Test, url: string, channel: string) => {
  const client = await connectedClient(t, url)
  t.match(await client.request({ id: 2, subscribe: { channel } }), { subscribe: {} })
  return client
}

t.test('workers', async (t) => {
  const relay = await startWorkers(t, 2, fileOf(backend.endpoint('workers')))

  t.test('send one event for subscribers of all workers', async (t) => {
    const clients = await Promise.all(Array.from({ length: 4 }, () => subscribed(t, relay.url, 'room:1')))
    await until('workers', 'room:1', ['occupied'])
    for (const client of clients) client.ws.close()

    await until('workers', 'room:1', ['occupied', 'vacated'])
  })

  t.test('report vacated after the worker of the last subscriber was killed', async (t) => {
    const clients = await Promise.all(Array.from({ length: 2 }, () => subscribed(t, relay.url, 'room:2')))
    await until('workers', 'room:2', ['occupied'])
    for (const pid of relay.workers()) process.kill(pid, 'SIGKILL')
    for (const client of clients) await client.closed

    await until('workers', 'room:2', ['occupied', 'vacated'])
  })

  t.test('apply a reload', async (t) => {
    relay.configure(fileOf(backend.endpoint('reloaded')))
    relay.program.signal('SIGHUP')
    await relay.program.waitForLine('config reloaded')
    await subscribed(t, relay.url, 'room:3')
    await until('reloaded', 'room:3', ['occupied'])
  })
})

/** A relay in a process of its own, on a Redis that is shared. */
const startNode = async (t: Test, redisUrl: string, event: string): Promise<Child & { readonly url: string }> => {
  const config = join(t.testdir(), 'relay.json')
  writeFileSync(config, JSON.stringify(fileOf(backend.endpoint(event))))
  const program = await startProgram(t, 'dist/src/relay/main.js', {
    RELAY_PORT: '0',
    RELAY_CONFIG: config,
    RELAY_ENGINE: 'redis',
    REDIS_URL: redisUrl,
    REALTIME_HMAC_SECRET: HMAC_SECRET,
    REALTIME_API_KEY: API_KEY
  })
  const [url = ''] = /http:[^"]+/.exec(await program.waitForLine('listening at')) ?? []
  return { ...program, url }
}

t.test('nodes on one Redis', async (t) => {
  const { url } = await startRedis(t)

  t.test('send one vacated after a node was killed, and none while another has a subscriber', async (t) => {
    const killed = await startNode(t, url, 'nodes')
    const survivor = await startRelay(t, fileOf(backend.endpoint('nodes')), { RELAY_ENGINE: 'redis', REDIS_URL: url })
    await subscribed(t, killed.url, 'room:alone')
    await subscribed(t, killed.url, 'room:shared')
    const kept = await subscribed(t, survivor.url, 'room:shared')
    await until('nodes', 'room:alone', ['occupied'])
    await until('nodes', 'room:shared', ['occupied'])
    killed.signal('SIGKILL')
    await until('nodes', 'room:alone', ['occupied', 'vacated'])
    t.same(told('nodes', 'room:shared'), ['occupied'])
    kept.ws.close()

    await until('nodes', 'room:shared', ['occupied', 'vacated'])
  })

  t.test('the next node to start sends the events that are left', async (t) => {
    backend.on('left', { error: { code: 1000, message: 'later' } })
    const killed = await startNode(t, url, 'left')
    await subscribed(t, killed.url, 'room:left')
    await eventually(() => told('left', 'room:left').length > 0)
    killed.signal('SIGKILL')
    await killed.exited
    // A node may also repeat events of the channels above, whose confirmations ended with their nodes.
    const eventIds = () =>
      eventsOf(backend, 'left')
        .filter(({ channel }) => channel === 'room:left')
        .map(({ id }) => id)
    const ids = new Set(eventIds())
    backend.reset()
    await startRelay(t, fileOf(backend.endpoint('left')), { RELAY_ENGINE: 'redis', REDIS_URL: url })
    await until('left', 'room:left', ['occupied', 'vacated'])

    t.equal(ids.size, 1)
    t.ok(ids.has(eventIds()[0] ?? ''), 'the event that was tried has the same id')
  })

  t.test('a node that stops leaves vacated to the next one', async (t) => {
    const stopped = await startNode(t, url, 'stopped')
    await subscribed(t, stopped.url, 'room:stopped')
    await until('stopped', 'room:stopped', ['occupied'])
    stopped.signal('SIGTERM')
    t.match(await stopped.exited, { code: 0 })
    t.equal(stopped.stderr, '')
    await startRelay(t, fileOf(backend.endpoint('stopped')), { RELAY_ENGINE: 'redis', REDIS_URL: url })

    await until('stopped', 'room:stopped', ['occupied', 'vacated'])
  })
})
