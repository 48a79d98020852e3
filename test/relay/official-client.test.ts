import type { Centrifuge, JoinContext, Subscription } from 'centrifuge'
import t, { type Test } from 'tap'
import { collect, event, officialClient, startRelay, TRANSPORTS, type TransportName } from '../helper/relay.js'
import { relayToken } from '../helper/relay-rules.js'

const WITH_HISTORY = { history_size: 100, history_ttl: '60s' }
const NAMESPACES = {
  channel: {
    namespaces: [
      {
        name: 'floor',
        allow_subscribe_for_client: true,
        ...WITH_HISTORY,
        force_recovery: true,
        conflate: 'data[].transmitterId'
      },
      {
        name: 'chat',
        allow_subscribe_for_client: true,
        allow_publish_for_subscriber: true,
        allow_presence_for_subscriber: true,
        allow_history_for_subscriber: true,
        presence: true,
        join_leave: true,
        ...WITH_HISTORY,
        allow_recovery: true,
        allow_positioning: true
      },
      {
        name: 'delta',
        allow_subscribe_for_client: true,
        ...WITH_HISTORY,
        force_recovery: true,
        allowed_delta_types: ['fossil'],
        delta_publish: true
      },
      {
        name: 'latest',
        allow_subscribe_for_client: true,
        ...WITH_HISTORY,
        force_recovery: true,
        force_recovery_mode: 'cache',
        auto_cache_recover: true
      },
      { name: 'closed' }
    ]
  }
}

const connect = async (t: Test, port: number, transport: TransportName, options = {}): Promise<Centrifuge> => {
  const client = officialClient(t, { port }, transport, options)
  const connected = event(client, 'connected')
  client.connect()
  await connected
  return client
}

const subscribe = async (client: Centrifuge, channel: string, options = {}): Promise<Subscription> => {
  const subscription = client.newSubscription(channel, options)
  const subscribed = event(subscription, 'subscribed')
  subscription.subscribe()
  await subscribed
  return subscription
}

for (const transport of TRANSPORTS) {
  t.test(`the official client over ${transport}`, async (t) => {
    t.test('the official client connects, subscribes and receives publications in order', async (t) => {
      const { port, publish } = await startRelay(t, NAMESPACES)
      const client = officialClient(t, { port }, transport)
      const connected = event(client, 'connected')
      const subscription = client.newSubscription('floor:7')
      const received = collect(subscription)
      const subscribed = event(subscription, 'subscribed')
      subscription.subscribe()
      client.connect()

      t.match(await connected, { transport, client: /^[0-9a-f-]{36}$/ })
      t.match(await subscribed, { recoverable: true, positioned: true, streamPosition: { offset: 0, epoch: /./ } })
      for (let data = 1; data <= 20; data++) await publish('floor:7', { data: [], n: data, text: 'å\n"{}' })
      await received.until(({ length }) => length === 20)
      t.same(
        received.publications.map(({ data, offset }) => [data.n, offset]),
        Array.from({ length: 20 }, (_, index) => [index + 1, index + 1])
      )
    })

    t.test('the official client publishes, reads history and presence, and receives join and leave', async (t) => {
      const { port } = await startRelay(t, NAMESPACES)
      const [ada, bob] = [
        await connect(t, port, transport, { getToken: async () => relayToken({ sub: 'ada', info: { name: 'Ada' } }) }),
        await connect(t, port, transport, { getToken: async () => relayToken({ sub: 'bob' }) })
      ]
      const atAda = await subscribe(ada, 'chat:1', { joinLeave: true })
      const results = event<JoinContext>(atAda, 'join', ({ info }) => info.user === 'bob')
      const atBob = await subscribe(bob, 'chat:1')
      t.match(await results, { info: { user: 'bob' } })

      const published = event(atAda, 'publication')
      await atBob.publish({ hi: 1 })
      t.match(await published, { data: { hi: 1 }, info: { user: 'bob' } })
      t.match(await atAda.history({ limit: 10 }), { publications: [{ data: { hi: 1 }, offset: 1 }], offset: 1 })
      t.same(
        Object.values((await atAda.presence()).clients)
          .map(({ user, connInfo }) => [user, connInfo])
          .sort(),
        [
          ['ada', { name: 'Ada' }],
          ['bob', undefined]
        ]
      )
      t.match(await atAda.presenceStats(), { numClients: 2, numUsers: 2 })

      const left = event(atAda, 'leave')
      atBob.unsubscribe()
      t.match(await left, { info: { user: 'bob' } })
    })

    t.test('the official client subscribes to 400 channels at once if channel_limit is 1000', async (t) => {
      const { port } = await startRelay(t, { ...NAMESPACES, client: { channel_limit: 1000 } })
      const client = officialClient(t, { port }, transport)
      const disconnected: unknown[] = []
      client.on('connecting', ({ code }) => {
        if (code !== 0) disconnected.push(code)
      })
      const subscribed = Array.from({ length: 400 }, (_, n) => {
        const subscription = client.newSubscription(`floor:${n}`)
        subscription.subscribe()
        return event(subscription, 'subscribed')
      })
      client.connect()
      await Promise.all(subscribed)

      t.same(disconnected, [], 'in one connection')
    })

    t.test('the official client continues without recovery if the recovery exceeds queue_max_size', async (t) => {
      const { port, publish } = await startRelay(t, NAMESPACES)
      const client = await connect(t, port, transport)
      const subscription = await subscribe(client, 'floor:7')
      const received = collect(subscription)
      client.disconnect()
      for (let n = 0; n < 30; n++) await publish('floor:7', 'x'.repeat(60_000))
      const resubscribed = event<{ wasRecovering: boolean; recovered: boolean }>(subscription, 'subscribed')
      client.connect()

      t.match(await resubscribed, { wasRecovering: true, recovered: false })
      await publish('floor:7', 'next')
      await received.until((publications) => publications.some(({ data }) => data === 'next'))
    })

    t.test('the official client receives the errors for a channel, a call and a message', async (t) => {
      const { port } = await startRelay(t, NAMESPACES)
      const client = await connect(t, port, transport)
      for (const [channel, code] of [
        ['closed:1', 103],
        ['nope:1', 102],
        ['bare', 103]
      ] as const) {
        const subscription = client.newSubscription(channel)
        const unsubscribed = event(subscription, 'unsubscribed')
        subscription.subscribe()
        t.match(await unsubscribed, { code })
      }
      await t.rejects(client.rpc('method', {}), { code: 108 })
      await t.rejects(client.publish('closed:1', {}), { code: 103 })
      const disconnected = event(client, 'disconnected')
      void client.send({}).catch(() => undefined)
      t.match(await disconnected, { code: 3508, reason: 'not available' })
    })

    t.test('the official client is subscribed to the channels of its token', async (t) => {
      const { port, publish } = await startRelay(t, NAMESPACES)
      const client = officialClient(t, { port }, transport, {
        getToken: async () => relayToken({ sub: '42', channels: ['closed:1'] })
      })
      const subscribed = event(client, 'subscribed')
      const published = event(client, 'publication')
      client.connect()
      t.match(await subscribed, { channel: 'closed:1' })
      await publish('closed:1', 7)

      t.match(await published, { channel: 'closed:1', data: 7 })
    })

    t.test('the official client refreshes a subscription token', async (t) => {
      const { port } = await startRelay(t, NAMESPACES)
      const client = await connect(t, port, transport)
      const tokens: number[] = []
      const subscription = client.newSubscription('closed:1', {
        minResubscribeDelay: 1,
        maxResubscribeDelay: 10,
        getToken: async ({ channel }) => {
          tokens.push(1)
          // The first token has expired.
          return relayToken(
            { sub: '42', channel },
            tokens.length === 1 ? { nowMs: Date.now() - 10_000, lifetimeSeconds: 1 } : {}
          )
        }
      })
      const subscribed = event(subscription, 'subscribed')
      subscription.subscribe()
      await subscribed

      t.equal(tokens.length, 2)
    })

    t.test('the official client applies deltas', async (t) => {
      const { port, publish } = await startRelay(t, NAMESPACES)
      const client = await connect(t, port, transport)
      const subscription = await subscribe(client, 'delta:1', { delta: 'fossil' })
      const received = collect(subscription)
      const data = Array.from({ length: 10 }, (_, n) => ({ n, same: 'x'.repeat(200), text: `é${n}` }))
      for (const each of data) await publish('delta:1', each)
      await received.until(({ length }) => length === 10)

      t.same(received.data, data)
    })

    t.test('the official client reconnects and recovers', async (t) => {
      const { port, publish, relay } = await startRelay(t, NAMESPACES)
      const client = await connect(t, port, transport)
      const received = collect(await subscribe(client, 'delta:1', { delta: 'fossil' }))
      const positions = collect(await subscribe(client, 'floor:1'))
      await publish('delta:1', { n: 1 })
      await publish('floor:1', { n: 1 })
      await received.until(({ length }) => length === 1)
      await positions.until(({ length }) => length === 1)
      const back = event(client, 'connected')
      client.disconnect()
      for (const n of [2, 3, 4]) {
        await publish('delta:1', { n })
        await publish('floor:1', { n })
      }
      client.connect()
      await back
      await publish('delta:1', { n: 5 })
      await publish('floor:1', { n: 5 })
      await received.until(({ length }) => length === 5)
      await positions.until(({ length }) => length === 5)

      t.same(
        received.data,
        [1, 2, 3, 4, 5].map((n) => ({ n }))
      )
      t.same(
        positions.data,
        [1, 2, 3, 4, 5].map((n) => ({ n }))
      )
      t.equal(relay.stats().clients, 1)
    })

    t.test('the official client receives the newest publication from the cache', async (t) => {
      const { port, publish } = await startRelay(t, NAMESPACES)
      for (const n of [1, 2]) await publish('latest:1', { n })
      const client = await connect(t, port, transport)
      const subscription = client.newSubscription('latest:1')
      const received = collect(subscription)
      subscription.subscribe()
      await received.until(({ length }) => length === 1)
      client.disconnect()
      for (const n of [3, 4]) await publish('latest:1', { n })
      const back = event(subscription, 'subscribed')
      client.connect()
      t.match(await back, { recovered: true, wasRecovering: true })
      await publish('latest:1', { n: 5 })
      await received.until(({ length }) => length === 3)

      t.same(
        received.publications.map(({ data, offset }) => [data.n, offset]),
        [
          [2, 2],
          [4, 4],
          [5, 5]
        ]
      )
    })

    t.test('the official client refreshes an expired connection token', async (t) => {
      const { port } = await startRelay(t, NAMESPACES)
      let requestCount = 0
      const client = officialClient(t, { port }, transport, {
        getToken: async () =>
          relayToken({ sub: '42' }, ++requestCount === 1 ? { nowMs: Date.now() - 10_000, lifetimeSeconds: 1 } : {})
      })
      const connected = event(client, 'connected')
      client.connect()
      await connected

      t.equal(requestCount, 2)
    })

    t.test('the official client answers pings', async (t) => {
      const { port, advance, relay } = await startRelay(t, NAMESPACES)
      const client = await connect(t, port, transport)
      const [connection] = relay.clients
      advance(25_000)
      // The pong has arrived when later commands of the client are answered.
      await t.rejects(client.rpc('x', {}), { code: 108 })
      await t.rejects(client.rpc('x', {}), { code: 108 })
      advance(8000)

      t.equal(connection?.isClosed, false)
    })

    t.test('the official client reconnects after 3001 and gives up after 3503', async (t) => {
      const { port, api } = await startRelay(t, NAMESPACES)
      const client = await connect(t, port, transport)
      const reconnecting = event(client, 'connecting')
      const back = event(client, 'connected')
      await api('disconnect', { user: '42', disconnect: { code: 3001, reason: 'shutdown' } })
      t.match(await reconnecting, { code: 3001, reason: 'shutdown' })
      await back

      const disconnected = event(client, 'disconnected')
      await api('disconnect', { user: '42' })
      t.match(await disconnected, { code: 3503, reason: 'force disconnect' })
    })

    t.test('the API subscribes and unsubscribes the official client', async (t) => {
      const { port, api } = await startRelay(t, NAMESPACES)
      const client = await connect(t, port, transport)
      const subscribed = event(client, 'subscribed')
      await api('subscribe', { user: '42', channel: 'closed:1', data: { hi: 1 } })
      t.match(await subscribed, { channel: 'closed:1', data: { hi: 1 } })
      const unsubscribed = event(client, 'unsubscribed')
      await api('unsubscribe', { user: '42', channel: 'closed:1' })
      t.match(await unsubscribed, { channel: 'closed:1' })

      const own = await subscribe(client, 'chat:1')
      const ended = event(own, 'unsubscribed')
      await api('unsubscribe', { user: '42', channel: 'chat:1' })
      t.match(await ended, { code: 2000, reason: 'server unsubscribe' })
    })
  })
}
