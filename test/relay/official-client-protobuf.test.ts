import type { Centrifuge, JoinContext, PublicationContext, Subscription } from 'centrifuge'
import t, { type Test } from 'tap'
import { collect, event, officialClient, officialProtobufClient, startRelay } from '../helper/relay.js'
import { relayToken } from '../helper/relay-rules.js'

const WITH_HISTORY = { history_size: 100, history_ttl: '60s' }
const NAMESPACES = {
  channel: {
    namespaces: [
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
      { name: 'closed' }
    ]
  }
}

const bytes = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value))
const value = (data: Uint8Array | undefined): unknown =>
  data === undefined || data.length === 0 ? undefined : JSON.parse(Buffer.from(data).toString())
const values = (publications: readonly PublicationContext[]): unknown[] => publications.map(({ data }) => value(data))

const subscribe = async (client: Centrifuge, channel: string, options = {}): Promise<Subscription> => {
  const subscription = client.newSubscription(channel, options)
  const subscribed = event(subscription, 'subscribed')
  subscription.subscribe()
  await subscribed
  return subscription
}

for (const transport of ['websocket', 'http_stream'] as const) {
  const connect = async (t: Test, port: number, options = {}): Promise<Centrifuge> => {
    const client = officialProtobufClient(t, { port }, transport, options)
    const connected = event(client, 'connected')
    client.connect()
    await connected
    return client
  }

  t.test(`the official client with protobuf over ${transport}`, async (t) => {
    t.test('the protobuf client connects, subscribes and receives publications in order', async (t) => {
      const { port, api } = await startRelay(t, NAMESPACES)
      const client = officialProtobufClient(t, { port }, transport)
      const connected = event(client, 'connected')
      const subscription = client.newSubscription('chat:7', { recoverable: true, positioned: true })
      const received = collect(subscription)
      const subscribed = event(subscription, 'subscribed')
      subscription.subscribe()
      client.connect()

      t.match(await connected, { transport, client: /^[0-9a-f-]{36}$/ })
      t.match(await subscribed, { recoverable: true, positioned: true, streamPosition: { epoch: /./ } })
      for (let n = 1; n <= 20; n++)
        await api('publish', { channel: 'chat:7', data: { n, text: 'å\n"{}' }, tags: { cell: `${n}` } })
      await received.until(({ length }) => length === 20)
      t.same(
        received.publications.map(({ data, offset, tags }) => [value(data), Number(offset), tags]),
        Array.from({ length: 20 }, (_, index) => [
          { n: index + 1, text: 'å\n"{}' },
          index + 1,
          { cell: `${index + 1}` }
        ])
      )
    })

    t.test('the protobuf client publishes, reads history and presence, and receives join and leave', async (t) => {
      const { port } = await startRelay(t, NAMESPACES)
      const ada = await connect(t, port, {
        getToken: async () => relayToken({ sub: 'ada "1"', info: { name: 'Ada', big: 1e21 } })
      })
      const bob = await connect(t, port, { getToken: async () => relayToken({ sub: 'bob' }) })
      const atAda = await subscribe(ada, 'chat:1', { joinLeave: true })
      const joined = event<JoinContext>(atAda, 'join', ({ info }) => info.user === 'bob')
      const atBob = await subscribe(bob, 'chat:1', { joinLeave: true })
      t.match(await joined, { info: { user: 'bob' } })

      const published = event<PublicationContext>(atBob, 'publication')
      await atAda.publish(bytes({ hi: 1 }))
      const { data, info } = await published
      t.same([value(data), info?.user, value(info?.connInfo)], [{ hi: 1 }, 'ada "1"', { name: 'Ada', big: 1e21 }])
      const history = await atAda.history({ limit: 10 })
      t.same([values(history.publications), Number(history.offset)], [[{ hi: 1 }], 1])
      t.same(
        Object.values((await atAda.presence()).clients)
          .map(({ user, connInfo }) => [user, value(connInfo)])
          .sort(),
        [
          ['ada "1"', { name: 'Ada', big: 1e21 }],
          ['bob', undefined]
        ]
      )
      t.match(await atAda.presenceStats(), { numClients: 2, numUsers: 2 })

      const left = event(atAda, 'leave')
      atBob.unsubscribe()
      t.match(await left, { info: { user: 'bob' } })
    })

    t.test('JSON and protobuf clients of a channel receive the same publications', async (t) => {
      const { port, publish } = await startRelay(t, NAMESPACES)
      const json = officialClient(t, { port }, transport)
      const connected = event(json, 'connected')
      json.connect()
      await connected
      const protobuf = await connect(t, port)
      const [atJson, atProtobuf] = [await subscribe(json, 'chat:1'), await subscribe(protobuf, 'chat:1')]
      const [receivedJson, receivedProtobuf] = [collect(atJson), collect(atProtobuf)]
      await atJson.publish({ from: 'json' })
      await atProtobuf.publish(bytes({ from: 'protobuf' }))
      await publish('chat:1', { from: 'api' })
      await receivedJson.until(({ length }) => length === 3)
      await receivedProtobuf.until(({ length }) => length === 3)

      t.same(receivedJson.data, [{ from: 'json' }, { from: 'protobuf' }, { from: 'api' }])
      t.same(values(receivedProtobuf.publications), receivedJson.data)
    })

    t.test('the protobuf client receives error 107 for data that is not JSON', async (t) => {
      const { port } = await startRelay(t, NAMESPACES)
      const client = await connect(t, port)
      const subscription = await subscribe(client, 'chat:1')
      for (const data of [[], [0xff, 0xfe], Buffer.from('{"a":'), Buffer.from('1 2'), [0x22, 0xff, 0x22]])
        await t.rejects(subscription.publish(Uint8Array.from(data)), { code: 107 })
    })

    t.test('the protobuf client receives the errors for a channel, a call and a message', async (t) => {
      const { port } = await startRelay(t, NAMESPACES)
      const client = await connect(t, port)
      for (const [channel, code] of [
        ['closed:1', 103],
        ['nope:1', 102]
      ] as const) {
        const subscription = client.newSubscription(channel)
        const unsubscribed = event(subscription, 'unsubscribed')
        subscription.subscribe()
        t.match(await unsubscribed, { code })
      }
      await t.rejects(client.rpc('method', bytes({})), { code: 108 })
      const disconnected = event(client, 'disconnected')
      void client.send(bytes({})).catch(() => undefined)
      t.match(await disconnected, { code: 3508, reason: 'not available' })
    })

    t.test('the protobuf client is subscribed to the channels of its token', async (t) => {
      const { port, publish } = await startRelay(t, NAMESPACES)
      const client = officialProtobufClient(t, { port }, transport, {
        getToken: async () => relayToken({ sub: '42', channels: ['closed:1'] })
      })
      const subscribed = event(client, 'subscribed')
      const published = event<PublicationContext>(client, 'publication')
      client.connect()
      t.match(await subscribed, { channel: 'closed:1' })
      await publish('closed:1', 7)

      t.equal(value((await published).data), 7)
    })

    t.test('the protobuf client applies deltas and recovers after a cut', async (t) => {
      const { port, publish } = await startRelay(t, NAMESPACES)
      const client = await connect(t, port)
      const subscription = await subscribe(client, 'delta:1', { delta: 'fossil' })
      const received = collect(subscription)
      const data = Array.from({ length: 10 }, (_, n) => ({ n, same: 'x'.repeat(200), text: `é${n}` }))
      for (const each of data.slice(0, 5)) await publish('delta:1', each)
      await received.until(({ length }) => length === 5)
      client.disconnect()
      for (const each of data.slice(5, 8)) await publish('delta:1', each)
      const back = event(subscription, 'subscribed')
      client.connect()
      t.match(await back, { recovered: true, wasRecovering: true })
      for (const each of data.slice(8)) await publish('delta:1', each)
      await received.until(({ length }) => length === 10)

      t.same(values(received.publications), data)
    })

    t.test('the protobuf client refreshes an expired connection token and a subscription token', async (t) => {
      const { port } = await startRelay(t, NAMESPACES)
      const EXPIRED = { nowMs: Date.now() - 10_000, lifetimeSeconds: 1 }
      let requestCount = 0
      const client = await connect(t, port, {
        getToken: async () => relayToken({ sub: '42' }, ++requestCount === 1 ? EXPIRED : {})
      })
      t.equal(requestCount, 2)
      let channelTokens = 0
      await subscribe(client, 'closed:1', {
        minResubscribeDelay: 1,
        maxResubscribeDelay: 10,
        getToken: async ({ channel }: { channel: string }) =>
          relayToken({ sub: '42', channel }, ++channelTokens === 1 ? EXPIRED : {})
      })
      t.equal(channelTokens, 2)
    })

    t.test('the protobuf client refreshes its connection before it expires', async (t) => {
      const { port } = await startRelay(t, NAMESPACES)
      let requestCount = 0
      let refreshed = (): void => undefined
      const twice = new Promise<void>((resolve) => {
        refreshed = resolve
      })
      const client = await connect(t, port, {
        getToken: async () => {
          if (++requestCount === 3) refreshed()
          return relayToken({ sub: '42' }, { lifetimeSeconds: requestCount === 3 ? 3600 : 1 })
        }
      })
      await twice
      await t.rejects(client.rpc('x', bytes({})), { code: 108 }, 'the connection is still open')
    })

    t.test('the protobuf client answers pings', async (t) => {
      const { port, advance, relay } = await startRelay(t, NAMESPACES)
      const client = await connect(t, port)
      const [connection] = relay.clients
      advance(25_000)
      // The pong has arrived when later commands of the client are answered.
      await t.rejects(client.rpc('x', bytes({})), { code: 108 })
      await t.rejects(client.rpc('x', bytes({})), { code: 108 })
      advance(8000)

      t.equal(connection?.isClosed, false)
    })

    t.test('the protobuf client reconnects after 3001 and gives up after 3503', async (t) => {
      const { port, api } = await startRelay(t, NAMESPACES)
      const client = await connect(t, port)
      const reconnecting = event(client, 'connecting')
      const back = event(client, 'connected')
      await api('disconnect', { user: '42', disconnect: { code: 3001, reason: 'shutdown' } })
      t.match(await reconnecting, { code: 3001, reason: 'shutdown' })
      await back

      const disconnected = event(client, 'disconnected')
      await api('disconnect', { user: '42' })
      t.match(await disconnected, { code: 3503, reason: 'force disconnect' })
    })

    t.test('the API subscribes and unsubscribes the protobuf client', async (t) => {
      const { port, api } = await startRelay(t, NAMESPACES)
      const client = await connect(t, port)
      const subscribed = event<{ channel: string; data: Uint8Array }>(client, 'subscribed')
      await api('subscribe', { user: '42', channel: 'closed:1', data: { hi: 1 } })
      const { channel, data } = await subscribed
      t.same([channel, value(data)], ['closed:1', { hi: 1 }])
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
