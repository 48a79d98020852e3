import t from 'tap'
import { EngineError } from '../../../../src/relay/core/engine.js'
import { NO_METRICS } from '../../../helper/no-metrics.js'
import { coreRelay, FakeSink, settled, withNamespace } from '../../../helper/relay-core.js'
import { configOf } from '../../../helper/relay-rules.js'

t.test('a connection', async (t) => {
  t.test('a connection without a connect command is closed as stale', async (t) => {
    const { client, advance } = coreRelay()
    const silent = client()
    await advance(9999)
    t.equal(silent.closed, null)
    await advance(1)

    t.equal(silent.closed, '3502 stale')
  })

  t.test('the first ping follows within half to one interval, later ones after each interval', async (t) => {
    const { connected, advance } = coreRelay()
    const client = await connected('42')
    await advance(18_749)
    t.same(client.received(), [])
    await advance(1)
    t.same(client.received(), [{}])
    await client.send('{}')
    await advance(24_999)
    t.same(client.received(), [])
    await advance(1)
    t.same(client.received(), [{}])
  })

  t.test('a connection without a pong is closed', async (t) => {
    const { connected, advance } = coreRelay()
    const client = await connected('42')
    await advance(18_750)
    await advance(7999)
    t.equal(client.closed, null)
    await advance(1)

    t.equal(client.closed, '3012 no pong')
  })

  t.test('a client is closed without a pong although a reload made the timeout longer than its interval', async (t) => {
    const { relay, connected, advance } = coreRelay({ client: { ping_interval: '10s', pong_timeout: '8s' } })
    const client = await connected('42')
    relay.configure(configOf({ client: { ping_interval: '60s', pong_timeout: '30s' } }))
    // The first ping follows after three quarters of the interval, because `random` returns a half.
    await advance(7500)
    for (let pings = 2; pings <= 3; pings++) await advance(10_000)
    t.equal(client.closed, null)
    await advance(10_000)

    t.equal(client.closed, '3012 no pong')
  })

  t.test('a second pong closes the connection', async (t) => {
    const { connected, advance } = coreRelay()
    const client = await connected('42')
    await advance(18_750)
    await client.send('{}')
    t.equal(client.closed, null)
    await client.send('{}')

    t.equal(client.closed, '3501 bad request')
  })

  t.test('a connection is closed only after the grace period of its expired token', async (t) => {
    const { client, token, advance } = coreRelay({ client: { ping_interval: '10000000s' } })
    const living = client()
    await living.send({ id: 1, connect: { token: token({ sub: '42' }, 100) } })
    await advance(124_999)
    t.equal(living.closed, null)
    await advance(1)

    t.equal(living.closed, '3005 connection expired')
  })

  t.test('a refreshed connection stays open', async (t) => {
    const { client, token, advance } = coreRelay({ client: { ping_interval: '10000000s' } })
    const living = client()
    await living.send({ id: 1, connect: { token: token({ sub: '42' }, 100) } })
    await advance(110_000)

    t.same(await living.send({ id: 2, refresh: { token: token({ sub: '42' }, 100) } }), [
      { id: 2, refresh: { client: 'id-2', expires: true, ttl: 100 } }
    ])
    await advance(124_999)
    t.equal(living.closed, null)
    await advance(1)
    t.equal(living.closed, '3005 connection expired')
  })

  t.test('a refresh with the same channels in another order is accepted', async (t) => {
    const { connected, token } = coreRelay(withNamespace({}))
    const client = await connected('42', { channels: ['chat:1', 'chat:2'] })
    const refresh = (...channels: string[]) => ({ id: 2, refresh: { token: token({ sub: '42', channels }) } })

    t.match(await client.send(refresh('chat:2', 'chat:1')), [{ id: 2, refresh: {} }])
    await client.send(refresh('chat:1'))
    t.equal(client.closed, '3010 insufficient state')
  })

  t.test('the seconds until an expiry are rounded up, and those between pings are at least one', async (t) => {
    const { client, token, clock } = coreRelay({ client: { ping_interval: '200ms', pong_timeout: '100ms' } })
    const connect = { token: token({ sub: '42' }, 100) }
    clock.nowMs += 500

    t.match(await client().send({ id: 1, connect }), [{ connect: { ttl: 100, ping: 1 } }])
  })

  t.test('a connection whose token does not expire stays open', async (t) => {
    const { client, token, advance } = coreRelay({ client: { ping_interval: '10000000s' } })
    const living = client()
    const [reply] = await living.send({ id: 1, connect: { token: token({ sub: '42', expire_at: 0 }, 100) } })
    await advance(10_000_000)

    t.same(reply, { id: 1, connect: { client: 'id-2', version: 'test', ping: 10000000, pong: true } })
    t.equal(living.closed, null)
  })

  t.test('an API refresh with an expiry in the past closes the connection at once', async (t) => {
    const { connected, relay, clock } = coreRelay()
    const [client, other] = [await connected('42'), await connected('43')]
    const target = { user: '42', client: '', session: '' }
    const expiresAt = Math.floor(clock.nowMs / 1000) - 1
    relay.surveyHandlers.handle('refresh', { target, refresh: { isExpired: false, expiresAt, info: null } })

    t.equal(client.closed, '3005 connection expired')
    t.equal(other.closed, null)
  })

  const refreshes: [title: string, claims: Record<string, unknown> | string, closed: string][] = [
    ['of another user', { sub: '43' }, '3500 invalid token'],
    ['with other channels', { sub: '42', channels: ['floor:7'] }, '3010 insufficient state'],
    ['that is forged', 'a.b.c', '3500 invalid token']
  ]
  for (const [title, claims, closed] of refreshes) {
    t.test(`a refresh with a token ${title} closes the connection`, async (t) => {
      const { connected, token } = coreRelay()
      const client = await connected('42')
      await client.send({ id: 2, refresh: { token: typeof claims === 'string' ? claims : token(claims) } })

      t.equal(client.closed, closed)
    })
  }

  t.test('a refresh with an expired token closes the connection with a code that allows reconnecting', async (t) => {
    const { connected, token, clock } = coreRelay()
    const client = await connected('42')
    const old = token({ sub: '42' }, 1)
    clock.nowMs += 1000
    await client.send({ id: 2, refresh: { token: old } })

    t.equal(client.closed, '3005 connection expired')
  })

  t.test('a closed connection leaves no subscriptions, channels or presence', async (t) => {
    const { connected, relay } = coreRelay(withNamespace({ allow_subscribe_for_client: true, presence: true }))
    const client = await connected('42', { channels: ['chat:2'] })
    await client.send({ id: 2, subscribe: { channel: 'chat:1' } })
    t.same(relay.stats(), { clients: 1, users: 1, channels: 2, subscriptions: 2 })
    client.client.connectionLost()

    t.same(relay.stats(), { clients: 0, users: 0, channels: 0, subscriptions: 0 })
    t.same(await relay.presenceStats('chat:1'), { clients: 0, users: 0 })
    t.equal(client.closed, null, 'no close frame is sent to a closed connection')
  })

  t.test('the session of an emulated connection ends with it', async (t) => {
    const { relay, client, token } = coreRelay()
    const emulated = client(new FakeSink(true))
    const [reply] = await emulated.send({ id: 1, connect: { token: token({ sub: '42' }) } })
    const frame = '{"id":2,"unsubscribe":{"channel":"x"}}'
    const { session = '', node = '' } = reply?.connect ?? {}
    t.equal(await relay.handleSessionFrame(node, session, frame), true)
    emulated.client.connectionLost()

    t.equal(await relay.handleSessionFrame(node, session, frame), false)
  })

  t.test('only connections that were counted as connected are counted as closed', async (t) => {
    let closed = 0
    const { connected, client } = coreRelay(undefined, {
      metrics: { ...NO_METRICS, clientClosed: () => void closed++ }
    })
    client().client.connectionLost()
    t.equal(closed, 0)
    const { client: live } = await connected('42')
    live.connectionLost()

    t.equal(closed, 1)
  })

  t.test('a subscribe that fails after its connection was closed has no effect', async (t) => {
    const errors: unknown[] = []
    const log = { info: () => undefined, warn: () => undefined, error: (fields: object) => void errors.push(fields) }
    let fail = (): void => undefined
    const read = (): Promise<never> =>
      new Promise((_, reject) => {
        fail = () => reject(new EngineError('down'))
      })
    const { connected, relay } = coreRelay(undefined, { log, history: { read, remove: async () => undefined } })
    const closing = await connected('42')
    await closing.send({ id: 2, subscribe: { channel: 'floor:7' } })
    closing.client.connectionLost()
    fail()
    await settled()

    t.same(errors, [])
    t.same(relay.stats(), { clients: 0, users: 0, channels: 0, subscriptions: 0 })
  })

  t.test('a connection receives its pending data before it is closed', async (t) => {
    const { connected, publish } = coreRelay()
    const client = await connected('42')
    await client.send({ id: 2, subscribe: { channel: 'floor:7' } })
    publish('floor:7', 'last words')
    client.client.handleFrame('garbage')

    t.match(client.sink.writes.at(-1), 'last words')
    t.equal(client.closed, '3501 bad request')
  })
})

t.test('sizes of commands and replies are counted in bytes', async (t) => {
  let received = 0
  const sent = { messages: { value: 0 }, bytes: { value: 0 } }
  const { connected } = coreRelay(
    withNamespace({ allow_subscribe_for_client: true, presence: true, allow_presence_for_client: true }),
    {
      metrics: {
        ...NO_METRICS,
        command: (_method, _namespace, bytes) => {
          received = bytes
        },
        sent: () => sent
      }
    }
  )
  const { send, sink } = await connected('42', { info: { name: 'Größe' } })
  const subscribe = '{"id":2,"subscribe":{"channel":"chat:1","note":"ß"}}'
  await send(subscribe)
  t.equal(received, Buffer.byteLength(subscribe))

  const writes = sink.writes.length
  sent.bytes.value = 0
  await send({ id: 3, presence: { channel: 'chat:1' } })
  const reply = sink.writes.slice(writes).join('')
  t.match(reply, 'Größe')
  t.equal(sent.bytes.value, Buffer.byteLength(reply))
})
