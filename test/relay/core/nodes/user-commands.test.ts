import t from 'tap'
import { EngineError } from '../../../../src/relay/core/engine.js'
import { NO_EVENT_PROXIES } from '../../../helper/no-event-proxies.js'
import { coreRelay, FakeSink, type Message, publicationAt, settled, withNamespace } from '../../../helper/relay-core.js'

const target = { user: '42', client: '', session: '' }
const subscription = { channel: 'chat:1', expiresAt: 0, info: null, data: null, override: {}, recover: null }
const WITH_HISTORY = { history_size: 10, history_ttl: '60s', force_recovery: true }

const setUp = async (options: Message, parts: Parameters<typeof coreRelay>[1] = {}) => {
  const relay = coreRelay(withNamespace(options), parts)
  const client = await relay.connected('42')
  const subscribe = (more: Message = {}): Promise<unknown> =>
    relay.relay.surveyHandlers.handle('subscribe', { target, subscription: { ...subscription, ...more } })
  return { ...relay, client, subscribe }
}

t.test('a subscription through the API that cannot recover starts at the end of the stream', async (t) => {
  const { client, subscribe, publish } = await setUp(WITH_HISTORY)
  publish('chat:1', 'before')

  t.equal(await subscribe({ recover: { epoch: 'lost', offset: 7 } }), null)
  publish('chat:1', 'after')
  const received = client.received()
  t.match(received, [
    { push: { channel: 'chat:1', subscribe: { offset: 1, recoverable: true } } },
    { push: { channel: 'chat:1', pub: { data: 'after', offset: 2 } } }
  ])
  t.equal(received.length, 2)
})

t.test('a gap on a channel that the API has subscribed closes the connection', async (t) => {
  const { client, subscribe, publish, delivery } = await setUp(WITH_HISTORY)
  publish('chat:1', 1)
  await subscribe()
  delivery.publication('chat:1', publicationAt(3), 'epoch1')

  t.equal(client.closed, '3010 insufficient state')
})

t.test('the API closes a connection that cannot receive the recovered publications', async (t) => {
  const bytes = { ...publicationAt(1), data: Buffer.from([0xff]) }
  const { client, subscribe } = await setUp(WITH_HISTORY, {
    history: {
      read: async () => ({ epoch: 'e', offset: 1, publications: [bytes], oldest: 1 }),
      remove: async () => undefined
    }
  })

  t.equal(await subscribe({ recover: { epoch: 'e', offset: 0 } }), null)
  t.equal(client.closed, '3506 inappropriate protocol')
})

t.test('the API reports a channel that a connection cannot have, and the connection stays open', async (t) => {
  const { client, subscribe, relay } = await setUp({ publication_data_format: 'binary' })

  t.match(await subscribe(), { code: 108 })
  t.equal(client.closed, null)
  t.same(client.received(), [])
  t.equal(relay.stats().subscriptions, 0)
})

t.test('later subscriptions have the info of a refresh through the API', async (t) => {
  const { client, relay } = await setUp({
    allow_subscribe_for_client: true,
    presence: true,
    allow_presence_for_subscriber: true
  })
  const refresh = { isExpired: false, expiresAt: 0, info: '{"name":"new"}' }
  await relay.surveyHandlers.handle('refresh', { target, refresh })
  // A refresh without an info keeps it.
  await relay.surveyHandlers.handle('refresh', { target, refresh: { ...refresh, info: null } })
  await client.send({ id: 2, subscribe: { channel: 'chat:1' } })

  t.match(await client.send({ id: 3, presence: { channel: 'chat:1' } }), [
    { presence: { presence: { 'id-2': { conn_info: { name: 'new' } } } } }
  ])
})

t.test('a subscription through the API that fails for one connection leaves no other subscribed', async (t) => {
  let reads = 0
  const read = () => {
    reads += 1
    if (reads === 2) throw new EngineError('away')
    return { epoch: 'e', offset: 0, publications: [], oldest: 1 }
  }
  const setup = await setUp(WITH_HISTORY, { history: { read, remove: async () => undefined } })
  for (let others = 0; others < 2; others++) await setup.connected('42')

  await t.rejects(setup.subscribe(), EngineError)
  t.equal(setup.relay.stats().subscriptions, 0)
  t.equal(await setup.subscribe(), null)
  t.equal(setup.relay.stats().subscriptions, 3)
})

t.test('a refresh through the API can end a connection earlier, whenever its next ping is', async (t) => {
  const options = { ping_interval: '10000000s', expired_close_delay: '5s' }
  const { relay, clock, connected, advance } = coreRelay(withNamespace({}, options))
  const client = await connected('42')
  await advance(1000)
  const refresh = { isExpired: false, expiresAt: clock.nowMs / 1000 + 10, info: null }
  await relay.surveyHandlers.handle('refresh', { target, refresh })

  t.match(client.received(), [{ push: { refresh: { expires: true, ttl: 10 } } }])
  await advance(14_999)
  t.equal(client.closed, null)
  await advance(1)
  t.equal(client.closed, '3005 connection expired')
})

t.test('the API does not subscribe a connection whose connect command is still running', async (t) => {
  let release = (): void => undefined
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const read = async () => {
    await released
    return { epoch: 'e', offset: 0, publications: [], oldest: 1 }
  }
  const file = withNamespace(WITH_HISTORY)
  const { relay, client, token } = coreRelay(file, { history: { read, remove: async () => undefined } })
  const connecting = client()
  await connecting.send({ id: 1, connect: { token: token({ sub: '42', channels: ['chat:own'] }) } })
  const applied = relay.surveyHandlers.handle('subscribe', { target, subscription })
  release()

  t.equal(await applied, null)
  await settled()
  const received = connecting.received()
  t.match(received, [{ id: 1, connect: { subs: { 'chat:own': {} } } }])
  t.equal(received.length, 1)
  t.equal(relay.stats().subscriptions, 1)
})

t.test('the API closes only the connection whose session it names', async (t) => {
  const { relay, client, token } = coreRelay()
  const clients = [client(new FakeSink(true)), client(new FakeSink(true))]
  const sessions: string[] = []
  for (const each of clients) {
    const [reply] = await each.send({ id: 1, connect: { token: token({ sub: '42' }) } })
    sessions.push(String(reply?.connect?.session))
  }
  const disconnect = (session = '') =>
    relay.disconnectUser({ target: { ...target, session }, whitelist: [], code: 4000, reason: 'gone' })
  const closed = () => clients.map((each) => each.closed)

  await disconnect('another session')
  t.same(closed(), [null, null])
  await disconnect(sessions[1])
  t.same(closed(), [null, '4000 gone'])
  await disconnect()
  t.same(closed(), ['4000 gone', '4000 gone'])
})

/** A relay whose engine answers when the test releases it, and a connect command that waits for it. */
const connectingRelay = async (client: Message = {}) => {
  let release = (): void => undefined
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const history = {
    read: async () => {
      await released
      return { epoch: 'e', offset: 0, publications: [], oldest: 1 }
    },
    remove: async () => undefined
  }
  const userConnections = {
    add: async () => {
      await released
      return null
    },
    remove: async () => undefined
  }
  const relay = coreRelay(withNamespace(WITH_HISTORY, client), { history, userConnections })
  const connecting = relay.client()
  const token = relay.token({ sub: '42', channels: ['chat:1', 'chat:2'] })
  await connecting.send({ id: 1, connect: { token } })
  const reply = async () => {
    release()
    await settled()
    await settled()
    return connecting.received()
  }
  return { ...relay, connecting, reply }
}

for (const [title, client] of [
  ['makes its server-side subscriptions', {}],
  ['is counted for its user', { user_connection_limit: 5 }]
] as const) {
  t.test(`the API disconnects a client that ${title}`, async (t) => {
    const { relay, connecting, reply } = await connectingRelay(client)
    await relay.surveyHandlers.handle('disconnect', { target, whitelist: [], code: 4000, reason: 'gone' })

    t.equal(connecting.closed, '4000 gone')
    t.same(relay.stats(), { clients: 0, users: 0, channels: 0, subscriptions: 0 })
    t.same(await reply(), [])
    t.same(relay.stats(), { clients: 0, users: 0, channels: 0, subscriptions: 0 })
  })

  t.test(`the API unsubscribes a client that ${title}`, async (t) => {
    const { relay, connecting, reply, publish } = await connectingRelay(client)
    await relay.surveyHandlers.handle('unsubscribe', { target, channel: 'chat:1' })
    const [{ connect } = {}, ...others] = await reply()

    t.same(Object.keys(connect?.subs ?? {}), ['chat:2'])
    t.same(others, [])
    t.same([...relay.openChannels.keys()], ['chat:2'])
    publish('chat:1', 'after')
    t.same(connecting.received(), [])
  })

  t.test(`the API refreshes a client that ${title}`, async (t) => {
    const { relay, clock, connecting, reply } = await connectingRelay(client)
    const refresh = { isExpired: false, expiresAt: clock.nowMs / 1000 + 10, info: '{"name":"new"}' }
    await relay.surveyHandlers.handle('refresh', { target, refresh })
    const received = await reply()

    t.match(received, [{ id: 1, connect: { expires: true, ttl: 10 } }])
    t.equal(received.length, 1)
    t.equal(connecting.client.info, '{"name":"new"}')
    await relay.surveyHandlers.handle('refresh', { target, refresh: { ...refresh, isExpired: true } })
    t.equal(connecting.closed, '3005 connection expired')
  })

  t.test(`the API ends a client that ${title} with an expiry in the past`, async (t) => {
    const { relay, connecting, reply } = await connectingRelay(client)
    await relay.surveyHandlers.handle('refresh', { target, refresh: { isExpired: true, expiresAt: 0, info: null } })

    t.equal(connecting.closed, '3005 connection expired')
    t.same(await reply(), [])
  })
}

t.test('the API unsubscribes a client whose subscribe command waits for the backend', async (t) => {
  let allow = (): void => undefined
  const asked = new Promise<void>((resolve) => {
    allow = resolve
  })
  const eventProxies = {
    ...NO_EVENT_PROXIES,
    subscribe: async () => {
      await asked
      return { info: null, data: null, override: {}, expiresAt: 0 }
    }
  }
  const file = {
    channel: {
      proxy: { subscribe: { endpoint: 'http://127.0.0.1:1' } },
      namespaces: [{ name: 'chat', subscribe_proxy_enabled: true }]
    }
  }
  const { connected, relay } = coreRelay(file, { eventProxies })
  const client = await connected('42')
  await client.send({ id: 2, subscribe: { channel: 'chat:1' } })
  await relay.surveyHandlers.handle('unsubscribe', { target, channel: 'chat:1' })
  allow()
  await settled()

  t.match(client.received(), [{ id: 2, error: { code: 103 } }])
  t.equal(relay.stats().subscriptions, 0)
  t.match(await client.send({ id: 3, subscribe: { channel: 'chat:1' } }), [{ id: 3, subscribe: {} }])
})

t.test('the API unsubscribes a client that the API subscribes at the same time', async (t) => {
  let release = (): void => undefined
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const read = async () => {
    await released
    return { epoch: 'e', offset: 0, publications: [], oldest: 1 }
  }
  const { relay, client, subscribe } = await setUp(WITH_HISTORY, { history: { read, remove: async () => undefined } })
  const subscribing = subscribe()
  await relay.surveyHandlers.handle('unsubscribe', { target, channel: 'chat:1' })
  t.equal(relay.stats().subscriptions, 0)
  release()

  t.equal(await subscribing, null)
  t.same(client.received(), [])
})
