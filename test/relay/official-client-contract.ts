import type { Centrifuge, JoinContext, Options, PublicationContext } from 'centrifuge'
import t, { type Test } from 'tap'
import { eventually } from '../helper/eventually.js'
import { collect, connectClient, event, startRelay, subscribeTo, type TransportName } from '../helper/relay.js'
import { relayToken } from '../helper/relay-rules.js'

/** One of the two codecs of the official client. */
export interface ClientKind {
  /** The subject of the test titles. */
  readonly name: string
  readonly transports: readonly TransportName[]
  create(t: Test, edge: { readonly port: number }, transport: TransportName, options?: Partial<Options>): Centrifuge
  /** Converts a value to the data that the client publishes. */
  encode(value: unknown): unknown
  /** Converts the data that the client receives to a value; undefined if there is none. */
  decode(data: unknown): unknown
}

const WITH_HISTORY = { history_size: 100, history_ttl: '60s' }
export const NAMESPACES = {
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

const EXPIRED = { nowMs: Date.now() - 10_000, lifetimeSeconds: 1 }

/** The tests that the official client passes with every codec and transport. */
export const officialClientContract = (kind: ClientKind): void => {
  for (const transport of kind.transports) {
    t.test(`${kind.name} over ${transport}`, (t) => contractOver(t, kind, transport))
  }
}

const contractOver = async (
  t: Test,
  { name, create, encode, decode }: ClientKind,
  transport: TransportName
): Promise<void> => {
  const connect = (t: Test, port: number, options: Partial<Options> = {}): Promise<Centrifuge> =>
    connectClient(create(t, { port }, transport, options))
  const values = (publications: readonly PublicationContext[]): unknown[] =>
    publications.map(({ data }) => decode(data))

  t.test(`${name} connects, subscribes and receives publications in order`, async (t) => {
    const { port, api } = await startRelay(t, NAMESPACES)
    const client = create(t, { port }, transport)
    const connected = event(client, 'connected')
    const subscription = client.newSubscription('floor:7')
    const received = collect(subscription)
    const subscribed = event(subscription, 'subscribed')
    subscription.subscribe()
    client.connect()

    t.match(await connected, { transport, client: /^[0-9a-f-]{36}$/ })
    t.match(await subscribed, { recoverable: true, positioned: true, streamPosition: { epoch: /./ } })
    for (let n = 1; n <= 20; n++)
      await api('publish', { channel: 'floor:7', data: { data: [], n, text: 'å\n"{}' }, tags: { cell: `${n}` } })
    await received.until(({ length }) => length === 20)
    t.same(
      received.publications.map(({ data, offset, tags }) => [decode(data), Number(offset), tags]),
      Array.from({ length: 20 }, (_, index) => [
        { data: [], n: index + 1, text: 'å\n"{}' },
        index + 1,
        { cell: `${index + 1}` }
      ])
    )
  })

  t.test(`${name} publishes, reads history and presence, and receives join and leave`, async (t) => {
    const { port } = await startRelay(t, NAMESPACES)
    const info = { name: 'Ada', big: 1e21 }
    const ada = await connect(t, port, { getToken: async () => relayToken({ sub: 'ada "1"', info }) })
    const bob = await connect(t, port, { getToken: async () => relayToken({ sub: 'bob' }) })
    const atAda = await subscribeTo(ada, 'chat:1', { joinLeave: true })
    const joined = event<JoinContext>(atAda, 'join', ({ info }) => info.user === 'bob')
    const atBob = await subscribeTo(bob, 'chat:1', { joinLeave: true })
    t.match(await joined, { info: { user: 'bob' } })

    const published = event<PublicationContext>(atBob, 'publication')
    await atAda.publish(encode({ hi: 1 }))
    const publication = await published
    t.same(decode(publication.data), { hi: 1 })
    t.same([publication.info?.user, decode(publication.info?.connInfo)], ['ada "1"', info])
    const history = await atAda.history({ limit: 10 })
    t.same([values(history.publications), Number(history.offset)], [[{ hi: 1 }], 1])
    t.same(
      Object.values((await atAda.presence()).clients)
        .map(({ user, connInfo }) => [user, decode(connInfo)])
        .sort(),
      [
        ['ada "1"', info],
        ['bob', undefined]
      ]
    )
    t.match(await atAda.presenceStats(), { numClients: 2, numUsers: 2 })

    const left = event(atAda, 'leave')
    atBob.unsubscribe()
    t.match(await left, { info: { user: 'bob' } })
  })

  t.test(`${name} that the API subscribes receives the publications since recover_since`, async (t) => {
    const { port, api, publish } = await startRelay(t, NAMESPACES)
    const client = await connect(t, port)
    const events: unknown[] = []
    client.on('subscribed', ({ channel, streamPosition }) =>
      events.push(['subscribed', channel, Number(streamPosition?.offset)])
    )
    client.on('publication', ({ data, offset }) => events.push([decode(data), Number(offset)]))
    const { epoch } = await publish('delta:7', 'a')
    for (const data of ['b', 'c']) await publish('delta:7', data)
    await api('subscribe', { user: '42', channel: 'delta:7', recover_since: { offset: 1, epoch } })
    await publish('delta:7', 'd')
    await eventually(() => events.length === 4)

    t.same(events, [
      ['subscribed', 'delta:7', 1],
      ['b', 2],
      ['c', 3],
      ['d', 4]
    ])
  })

  t.test(`${name} subscribes to 400 channels at once if channel_limit is 1000`, async (t) => {
    const { port } = await startRelay(t, { ...NAMESPACES, client: { channel_limit: 1000 } })
    const client = create(t, { port }, transport)
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

  t.test(`${name} continues without recovery if the recovery exceeds queue_max_size`, async (t) => {
    const { port, publish } = await startRelay(t, NAMESPACES)
    const client = await connect(t, port)
    const subscription = await subscribeTo(client, 'floor:7')
    const received = collect(subscription)
    client.disconnect()
    for (let n = 0; n < 30; n++) await publish('floor:7', 'x'.repeat(60_000))
    const resubscribed = event(subscription, 'subscribed')
    client.connect()

    t.match(await resubscribed, { wasRecovering: true, recovered: false })
    await publish('floor:7', 'next')
    await received.until((publications) => values(publications).includes('next'))
  })

  t.test(`${name} receives the errors for a channel, a call and a message`, async (t) => {
    const { port } = await startRelay(t, NAMESPACES)
    const client = await connect(t, port)
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
    await t.rejects(client.rpc('method', encode({})), { code: 108 })
    await t.rejects(client.publish('closed:1', encode({})), { code: 103 })
    const disconnected = event(client, 'disconnected')
    void client.send(encode({})).catch(() => undefined)
    t.match(await disconnected, { code: 3508, reason: 'not available' })
  })

  t.test(`${name} is subscribed to the channels of its token`, async (t) => {
    const { port, publish } = await startRelay(t, NAMESPACES)
    const client = create(t, { port }, transport, {
      getToken: async () => relayToken({ sub: '42', channels: ['closed:1'] })
    })
    const subscribed = event(client, 'subscribed')
    const published = event<PublicationContext>(client, 'publication')
    client.connect()
    t.match(await subscribed, { channel: 'closed:1' })
    await publish('closed:1', 7)

    t.equal(decode((await published).data), 7)
  })

  t.test(`${name} refreshes an expired connection token and an expired subscription token`, async (t) => {
    const { port } = await startRelay(t, NAMESPACES)
    let connectionTokens = 0
    const client = await connect(t, port, {
      getToken: async () => relayToken({ sub: '42' }, ++connectionTokens === 1 ? EXPIRED : {})
    })
    t.equal(connectionTokens, 2)
    let subscriptionTokens = 0
    await subscribeTo(client, 'closed:1', {
      minResubscribeDelay: 1,
      maxResubscribeDelay: 10,
      getToken: async ({ channel }) => relayToken({ sub: '42', channel }, ++subscriptionTokens === 1 ? EXPIRED : {})
    })
    t.equal(subscriptionTokens, 2)
  })

  t.test(`${name} applies deltas and recovers after a reconnect`, async (t) => {
    const { port, publish, relay } = await startRelay(t, NAMESPACES)
    const client = await connect(t, port)
    const deltas = await subscribeTo(client, 'delta:1', { delta: 'fossil' })
    const [fromDeltas, plain] = [collect(deltas), collect(await subscribeTo(client, 'floor:1'))]
    const data = Array.from({ length: 10 }, (_, n) => ({ n, same: 'x'.repeat(200), text: `é${n}` }))
    const publishAll = async (payloads: readonly unknown[]): Promise<void> => {
      for (const payload of payloads) for (const channel of ['delta:1', 'floor:1']) await publish(channel, payload)
    }
    await publishAll(data.slice(0, 5))
    for (const { until } of [fromDeltas, plain]) await until(({ length }) => length === 5)
    client.disconnect()
    await publishAll(data.slice(5, 8))
    const resubscribed = event(deltas, 'subscribed')
    client.connect()
    t.match(await resubscribed, { recovered: true, wasRecovering: true })
    await publishAll(data.slice(8))
    for (const { until } of [fromDeltas, plain]) await until(({ length }) => length === 10)

    t.same(values(fromDeltas.publications), data)
    t.same(values(plain.publications), data)
    t.equal(relay.stats().clients, 1)
  })

  t.test(`${name} receives the newest publication from the cache`, async (t) => {
    const { port, publish } = await startRelay(t, NAMESPACES)
    for (const n of [1, 2]) await publish('latest:1', { n })
    const client = await connect(t, port)
    const subscription = client.newSubscription('latest:1')
    const received = collect(subscription)
    subscription.subscribe()
    await received.until(({ length }) => length === 1)
    client.disconnect()
    for (const n of [3, 4]) await publish('latest:1', { n })
    const resubscribed = event(subscription, 'subscribed')
    client.connect()
    t.match(await resubscribed, { recovered: true, wasRecovering: true })
    await publish('latest:1', { n: 5 })
    await received.until(({ length }) => length === 3)

    t.same(
      received.publications.map(({ data, offset }) => [decode(data), Number(offset)]),
      [2, 4, 5].map((n) => [{ n }, n])
    )
  })

  t.test(`${name} answers pings`, async (t) => {
    const { port, advance, relay } = await startRelay(t, NAMESPACES)
    const client = await connect(t, port)
    const [connection] = relay.clients
    advance(25_000)
    // The pong has arrived when later commands of the client are answered.
    await t.rejects(client.rpc('x', encode({})), { code: 108 })
    await t.rejects(client.rpc('x', encode({})), { code: 108 })
    advance(8000)

    t.equal(connection?.isClosed, false)
  })

  t.test(`${name} reconnects after 3001 and gives up after 3503`, async (t) => {
    const { port, api } = await startRelay(t, NAMESPACES)
    const client = await connect(t, port)
    const reconnecting = event(client, 'connecting')
    const reconnected = event(client, 'connected')
    await api('disconnect', { user: '42', disconnect: { code: 3001, reason: 'shutdown' } })
    t.match(await reconnecting, { code: 3001, reason: 'shutdown' })
    await reconnected

    const disconnected = event(client, 'disconnected')
    await api('disconnect', { user: '42' })
    t.match(await disconnected, { code: 3503, reason: 'force disconnect' })
  })

  t.test(`${name} loses its connection after a disconnect with 3000, and connects again`, async (t) => {
    const { port, api } = await startRelay(t, NAMESPACES)
    const client = await connect(t, port)
    const reconnecting = event(client, 'connecting')
    const reconnected = event(client, 'connected')
    await api('disconnect', { user: '42', disconnect: { code: 3000, reason: 'anything' } })
    t.match(await reconnecting, { code: 1, reason: 'transport closed' })
    await reconnected
  })

  t.test(`the API subscribes and unsubscribes ${name}`, async (t) => {
    const { port, api } = await startRelay(t, NAMESPACES)
    const client = await connect(t, port)
    const subscribed = event<{ channel: string; data: unknown }>(client, 'subscribed')
    await api('subscribe', { user: '42', channel: 'closed:1', data: { hi: 1 } })
    const { channel, data } = await subscribed
    t.same([channel, decode(data)], ['closed:1', { hi: 1 }])
    const unsubscribed = event(client, 'unsubscribed')
    await api('unsubscribe', { user: '42', channel: 'closed:1' })
    t.match(await unsubscribed, { channel: 'closed:1' })

    const subscription = await subscribeTo(client, 'chat:1')
    const ended = event(subscription, 'unsubscribed')
    await api('unsubscribe', { user: '42', channel: 'chat:1' })
    t.match(await ended, { code: 2000, reason: 'server unsubscribe' })
  })
}
