import type { Centrifuge, JoinContext, LeaveContext } from 'centrifuge'
import t, { type Test } from 'tap'
import { eventually } from '../../helper/eventually.js'
import { send } from '../../helper/http.js'
import { connectedClient } from '../../helper/raw-client.js'
import {
  collect,
  connectClient,
  event,
  officialClient,
  subscribeTo,
  TRANSPORTS,
  type TransportName
} from '../../helper/relay.js'
import { relayToken } from '../../helper/relay-rules.js'
import { atEachWorker, startWorkers } from '../../helper/relay-workers.js'
import { required } from '../../helper/required.js'
import type { ServerMessage } from '../../helper/server-message.js'

const WORKERS = 3
const WITH_HISTORY = { history_size: 1000, history_ttl: '300s', allow_subscribe_for_client: true }
const FILE = {
  channel: {
    namespaces: [
      { name: 'seq', ...WITH_HISTORY, force_recovery: true },
      {
        name: 'chat',
        ...WITH_HISTORY,
        presence: true,
        join_leave: true,
        allow_presence_for_subscriber: true,
        allow_publish_for_subscriber: true,
        allow_history_for_subscriber: true
      },
      { name: 'plain', allow_subscribe_for_client: true },
      { name: 'closed' }
    ]
  },
  client: { recovery_max_publication_limit: 1000 }
}

const relay = await startWorkers(t, WORKERS, FILE)

let channels = 0
/** Tests share the relay, so each uses its own channel. */
const newChannel = (namespace: string): string => `${namespace}:${++channels}`

const connect = (t: Test, user: string, transport: TransportName = 'websocket'): Promise<Centrifuge> =>
  connectClient(officialClient(t, relay, transport, { getToken: async () => relayToken({ sub: user }) }))

t.test('several workers', async (t) => {
  t.test('each worker is a node with a name of its own', async (t) => {
    t.same((await relay.nodes()).map(({ name }) => name).sort(), ['relay worker 1', 'relay worker 2', 'relay worker 3'])
  })

  for (const namespace of ['seq', 'plain']) {
    t.test(`clients of all workers receive the publications on ${namespace} in the same order`, async (t) => {
      const channel = newChannel(namespace)
      const clients = await atEachWorker(relay, () => connect(t, 'ada'))
      const received = await Promise.all(clients.map(async (client) => collect(await subscribeTo(client, channel))))
      const publish = async (publisher: number): Promise<void> => {
        for (let n = 0; n < 50; n++) await relay.publish(channel, { publisher, n })
      }
      await Promise.all([0, 1, 2, 3].map(publish))
      await Promise.all(received.map(({ until }) => until(({ length }) => length === 200)))

      const [first] = received
      for (const { data } of received) t.same(data, first?.data)
      for (const publisher of [0, 1, 2, 3]) {
        const own = first?.data.filter((each) => each.publisher === publisher)
        t.same(
          own?.map(({ n }) => n),
          Array.from({ length: 50 }, (_, n) => n)
        )
      }
    })
  }

  t.test('an idempotency key is valid at all workers', async (t) => {
    const channel = newChannel('seq')
    const results = await Promise.all(
      Array.from({ length: 2 * WORKERS }, () => relay.api('publish', { channel, data: 1, idempotency_key: 'k' }))
    )
    for (const result of results) t.match(result, { offset: 1 })
    t.match(await relay.publish(channel, 2), { offset: 2 })
  })

  t.test('presence, joins and leaves include the clients of all workers', async (t) => {
    const channel = newChannel('chat')
    const [ada, bob, eve] = await Promise.all([connect(t, 'ada'), connect(t, 'bob'), connect(t, 'eve')])
    const atAda = await subscribeTo(ada, channel, { joinLeave: true })
    const joined = event<JoinContext>(atAda, 'join', ({ info }) => info.user === 'eve')
    await subscribeTo(bob, channel)
    await subscribeTo(eve, channel)
    await joined
    // The presence of a subscriber is stored after its reply.
    await eventually(async () => (await relay.api('presence_stats', { channel })).num_clients === 3)
    t.same(
      Object.values((await atAda.presence()).clients)
        .map(({ user }) => user)
        .sort(),
      ['ada', 'bob', 'eve']
    )
    t.match(await relay.api('presence_stats', { channel }), { num_clients: 3, num_users: 3 })
    t.match(await relay.api('channels', { pattern: channel }), { channels: { [channel]: { num_clients: 3 } } })
    const left = event<LeaveContext>(atAda, 'leave', ({ info }) => info.user === 'bob')
    bob.disconnect()
    await left
    t.match(await relay.api('presence_stats', { channel }), { num_clients: 2 })
  })

  t.test('API commands apply to a user at all workers', async (t) => {
    const clients = await atEachWorker(relay, () => connect(t, 'mallory'))
    const subscribed = clients.map((client) => event(client, 'subscribed'))
    await relay.api('subscribe', { user: 'mallory', channel: 'closed:1' })
    await Promise.all(subscribed)
    const unsubscribed = clients.map((client) => event(client, 'unsubscribed'))
    await relay.api('unsubscribe', { user: 'mallory', channel: 'closed:1' })
    await Promise.all(unsubscribed)
    const disconnected = clients.map((client) => event(client, 'disconnected'))
    await relay.api('disconnect', { user: 'mallory' })

    for (const each of await Promise.all(disconnected)) t.match(each, { code: 3503 })
  })

  t.test('an API subscribe that fails returns the error', async (t) => {
    await connect(t, 'trent')
    const { body } = await send(relay.url, '/api/subscribe', {
      method: 'POST',
      body: JSON.stringify({ user: 'trent', channel: 'nowhere:1' }),
      headers: { 'x-api-key': 'the key of the publish API, at least 32 bytes' }
    })
    t.match(JSON.parse(body), { error: { code: 102 } })
  })
})

for (const transport of TRANSPORTS) {
  t.test(`a client over ${transport}`, async (t) => {
    t.test('a client that reconnects to another worker recovers what it missed', async (t) => {
      const channel = newChannel('seq')
      const client = await connect(t, 'ada', transport)
      const subscription = await subscribeTo(client, channel)
      const received = collect(subscription)
      let published = 0
      for (let time = 0; time < 2 * WORKERS; time++) {
        client.disconnect()
        await relay.publish(channel, { n: ++published })
        const back = event(subscription, 'subscribed')
        client.connect()
        t.match(await back, { recovered: true, wasRecovering: true })
        await relay.publish(channel, { n: ++published })
        await received.until(({ length }) => length === published)
      }

      t.same(
        received.data.map(({ n }) => n),
        Array.from({ length: published }, (_, index) => index + 1)
      )
    })

    t.test('requests of a client are served by whichever worker receives them', async (t) => {
      const channel = newChannel('chat')
      const client = await connect(t, 'ada', transport)
      const subscription = await subscribeTo(client, channel)
      for (let n = 1; n <= 2 * WORKERS; n++) {
        await subscription.publish({ n })
        t.match(await subscription.history({ limit: 1, reverse: true }), { publications: [{ data: { n } }] })
      }
    })
  })
}

t.test('a request to /emulation', async (t) => {
  const body = JSON.stringify({ id: 1, connect: { token: relayToken({ sub: '42' }) } })
  const stream = await fetch(`${relay.url}/connection/http_stream`, { method: 'POST', body })
  const reader = required(stream.body).getReader()
  t.teardown(() => reader.cancel())
  let text = ''
  const line = async (): Promise<ServerMessage> => {
    while (!text.includes('\n')) text += Buffer.from((await reader.read()).value ?? []).toString()
    const [first = '', ...rest] = text.split('\n')
    text = rest.join('\n')
    return JSON.parse(first)
  }
  const { session = '', node = '' } = required((await line()).connect)
  const sendCommand = (session: string, node: string, id: number): Promise<{ readonly status: number }> =>
    send(relay.url, '/emulation', {
      method: 'POST',
      body: JSON.stringify({ session, node, data: JSON.stringify({ id, rpc: { method: 'x' } }) })
    })

  t.test('a request to /emulation is passed to the worker that has the session', async (t) => {
    for (let id = 2; id < 2 + 2 * WORKERS; id++) {
      t.equal((await sendCommand(session, node, id)).status, 204)
      t.match(await line(), { id, error: { code: 108 } })
    }
  })

  t.test('an unknown session or node is 404', async (t) => {
    const nodes = await relay.nodes()
    for (const { uid } of nodes) t.equal((await sendCommand('guessed', uid, 99)).status, 404)
    t.equal((await sendCommand(session, 'nowhere', 99)).status, 404)
    for (const { uid } of nodes.filter(({ uid }) => uid !== node)) {
      t.equal((await sendCommand(session, uid, 99)).status, 404)
    }
  })
})

t.test('every worker', async (t) => {
  t.test('every worker responds to probes and serves clients', async (t) => {
    for (let time = 0; time < WORKERS; time++) t.equal((await send(relay.url, '/health')).status, 200)
    const clients = await Promise.all(Array.from({ length: WORKERS }, () => connectedClient(t, relay.url)))
    for (const client of clients) {
      t.match(await client.request({ id: 2, subscribe: { channel: 'plain:1' } }), { id: 2, subscribe: {} })
    }
  })
})

t.test('metrics of a relay with workers', async (t) => {
  const numbers = async (): Promise<ReadonlyMap<string, number>> => {
    const { body } = await send(relay.url, '/metrics')
    const lines = body.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
    return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]))
  }
  const sum = (samples: ReadonlyMap<string, number>, name: string): number =>
    [1, 2, 3].reduce((total, worker) => total + (samples.get(`${name}{worker="${worker}"}`) ?? Number.NaN), 0)

  t.test('every worker returns the same sums and the values of each process', async (t) => {
    const channel = newChannel('seq')
    const clients = await Promise.all(Array.from({ length: 2 * WORKERS }, () => connectedClient(t, relay.url)))
    for (const client of clients) await client.request({ id: 2, subscribe: { channel } })
    const sent =
      'centrifugo_transport_messages_sent{transport="websocket",frame_type="push_publication",channel_namespace="seq"}'
    const before = required((await numbers()).get(sent))
    await relay.publish(channel, 1)
    for (const client of clients) await client.next()
    for (let time = 0; time < WORKERS; time++) {
      const now = await numbers()
      t.equal(now.get(sent), before + clients.length)
      t.equal(now.get('centrifugo_node_num_nodes'), WORKERS)
      t.ok(required(now.get('centrifugo_node_num_clients')) >= clients.length)
      t.equal(sum(now, 'relay_worker_clients'), now.get('centrifugo_node_num_clients'))
      t.equal(sum(now, 'relay_worker_subscriptions'), now.get('centrifugo_node_num_subscriptions'))
      t.ok(required(now.get('relay_worker_cpu_seconds_total{worker="primary"}')) > 0)
      t.equal(now.get('relay_worker_replacements_total'), 0)
    }
  })
})

t.test('SIGTERM to a relay with workers', async (t) => {
  const clients = await Promise.all(Array.from({ length: 2 * WORKERS }, () => connectedClient(t, relay.url)))
  const pids = relay.workers()
  relay.program.signal('SIGTERM')

  t.test('all clients are closed with 3001 and the exit code is 0', async (t) => {
    for (const { closed } of clients) t.equal(await closed, '3001 shutdown')
    t.same(await relay.program.exited, { code: 0, signal: null })
    for (const pid of pids) t.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
    t.notMatch(relay.program.stdout, /"level":(50|60)/)
    t.equal(relay.program.stderr, '')
  })
})
