import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { eventually } from '../helper/eventually.js'
import { send } from '../helper/http.js'
import { startRedis } from '../helper/redis.js'
import {
  collect,
  connectClient,
  type EdgeRelay,
  event,
  officialClient,
  startRelay,
  subscribeTo
} from '../helper/relay.js'
import { relayToken } from '../helper/relay-rules.js'

const NAMESPACES = {
  channel: {
    namespaces: [
      {
        name: 'chat',
        allow_subscribe_for_client: true,
        allow_presence_for_subscriber: true,
        history_size: 100,
        history_ttl: '300s',
        force_recovery: true,
        presence: true,
        join_leave: true,
        force_push_join_leave: true
      }
    ]
  }
}

t.test('two relays on one Redis', async (t) => {
  const { url } = await startRedis(t)
  const start = (t: Test) => startRelay(t, NAMESPACES, { RELAY_ENGINE: 'redis', REDIS_URL: url })
  const [one, other] = [await start(t), await start(t)]
  const result = async (edge: EdgeRelay, method: string, request: unknown) =>
    JSON.parse((await edge.api(method, request)).body).result

  const connected = async (t: Test, edge: EdgeRelay, user: string, channel: string) => {
    const getToken = async (): Promise<string> => relayToken({ sub: user })
    const client = await connectClient(officialClient(t, edge, 'websocket', { getToken }))
    const subscription = await subscribeTo(client, channel)
    const received = collect(subscription)
    return { client, subscription, ...received, received }
  }

  t.test('publications of both relays are delivered at both in the same order', async (t) => {
    const listeners = await Promise.all([connected(t, one, 'a', 'chat:1'), connected(t, other, 'b', 'chat:1')])
    const published = await Promise.all(
      Array.from({ length: 40 }, (_, n) => (n % 2 === 0 ? one : other).publish('chat:1', { n }))
    )
    for (const { received } of listeners) await received.until(({ length }) => length >= 40)

    const order = published.map(({ offset }, n) => [offset, n] as const).sort(([a], [b]) => a - b)
    for (const { publications } of listeners) {
      t.same(
        publications.map(({ offset, data }) => [offset, data.n]),
        order
      )
    }
  })

  t.test('a client that reconnects to the other relay recovers what it missed', async (t) => {
    const { client, subscription } = await connected(t, one, 'a', 'chat:2')
    await one.publish('chat:2', 1)
    client.disconnect()
    await other.publish('chat:2', 2)
    await one.publish('chat:2', 3)

    const moved = officialClient(t, other, 'websocket')
    const since = { epoch: (await result(one, 'history', { channel: 'chat:2', limit: 0 })).epoch, offset: 1 }
    const again = moved.newSubscription('chat:2', { since })
    const received = collect(again)
    const subscribed = event(again, 'subscribed')
    again.subscribe()
    moved.connect()
    t.match(await subscribed, { wasRecovering: true, recovered: true })
    await received.until(({ length }) => length >= 2)
    t.same(received.data, [2, 3])
    t.equal(subscription.state, 'subscribing')
  })

  t.test('presence, joins and leaves include the clients of both relays', async (t) => {
    const observer = await connected(t, one, 'ada', 'chat:3')
    const results = event<{ info: { user: string } }>(observer.subscription, 'join', ({ info }) => info.user === 'bob')
    const left = event<{ info: { user: string } }>(observer.subscription, 'leave', ({ info }) => info.user === 'bob')
    const { client } = await connected(t, other, 'bob', 'chat:3')
    await results
    const { clients } = await observer.subscription.presence()
    t.same(
      Object.values(clients)
        .map(({ user }) => user)
        .sort(),
      ['ada', 'bob']
    )
    t.same(await result(other, 'presence_stats', { channel: 'chat:3' }), { num_clients: 2, num_users: 2 })
    client.disconnect()
    await left

    t.same(await result(other, 'presence_stats', { channel: 'chat:3' }), { num_clients: 1, num_users: 1 })
  })

  t.test('API results include both relays', async (t) => {
    await Promise.all([connected(t, one, 'a', 'chat:4'), connected(t, other, 'b', 'chat:4')])
    for (const edge of [one, other]) {
      t.match(await result(edge, 'channels', { pattern: 'chat:4' }), { channels: { 'chat:4': { num_clients: 2 } } })
      const { nodes } = await result(edge, 'info', {})
      t.same(nodes.map(({ uid }: { uid: string }) => uid).sort(), [one, other].map(({ relay }) => relay.node).sort())
      t.match((await send(edge.url, '/metrics')).body, /^centrifugo_node_num_nodes 2$/m)
    }
  })

  const actions: [method: string, request: object, eventName: string, seen: object][] = [
    ['unsubscribe', { channel: 'chat:5' }, 'unsubscribed', { code: 2000 }],
    ['disconnect', {}, 'disconnected', { code: 3503 }],
    ['refresh', { expired: true }, 'connecting', { code: 3005 }]
  ]
  for (const [method, request, eventName, seen] of actions) {
    t.test(`${method} applies to the clients of the other relay`, async (t) => {
      const { client, subscription } = await connected(t, other, method, 'chat:5')
      const notified = event(eventName === 'unsubscribed' ? subscription : client, eventName)
      t.same(await result(one, method, { user: method, ...request }), {})

      t.match(await notified, seen)
    })
  }

  t.test('an API subscribe applies to the clients of the other relay', async (t) => {
    const { client } = await connected(t, other, 'sub', 'chat:6')
    const subscribed = event(client, 'subscribed')
    t.same(await result(one, 'subscribe', { user: 'sub', channel: 'chat:7' }), {})

    t.match(await subscribed, { channel: 'chat:7' })
  })

  t.test('/emulation requests are passed on to the relay that has the session', async (t) => {
    const client = officialClient(t, other, 'http_stream', { emulationEndpoint: `${one.url}/emulation` })
    const subscription = client.newSubscription('chat:8')
    const subscribed = event(subscription, 'subscribed')
    client.connect()
    await event(client, 'connected')
    subscription.subscribe()

    t.match(await subscribed, { channel: 'chat:8' })
  })

  t.test('a survey of one relay is sent to that relay only', async (t) => {
    const redis = new Redis(url)
    t.teardown(() => redis.disconnect())
    const topics: string[] = []
    redis.on('pmessage', (_pattern, topic: string, text: string) => {
      if (JSON.parse(text).survey === 'emulate') topics.push(topic)
    })
    await redis.psubscribe('gatehouse!{all}all-nodes*', 'gatehouse!{all}node:*')
    t.equal(await one.relay.handleSessionFrame(other.relay.node, 'no such session', '{}'), false)
    await eventually(() => topics.length > 0)

    t.same(topics, [`gatehouse!{all}node:${other.relay.node}`])
  })

  t.test('a relay subscribes in Redis only to channels with subscribers', async (t) => {
    const { client } = await connected(t, one, 'a', 'chat:only')
    const redis = new Redis(url)
    t.teardown(() => redis.disconnect())
    const listeners = async () => (await redis.pubsub('NUMSUB', 'gatehouse{:chat:only}'))[1]
    t.equal(await listeners(), 1)
    client.disconnect()

    await eventually(async () => (await listeners()) === 0)
  })

  t.test('a relay that has left is not listed', async (t) => {
    const third = await start(t)
    await eventually(async () => (await result(one, 'info', {})).nodes.length === 3)
    await third.running.close()

    t.equal((await result(one, 'info', {})).nodes.length, 2)
  })
})
