import t from 'tap'
import { coreRelay } from '../../../helper/relay-core.js'

const HOUR_MS = 3_600_000

for (const [direction, stepMs] of [
  ['back', -HOUR_MS],
  ['forward', HOUR_MS]
] as const) {
  t.test(`pings keep their interval when the system clock is set ${direction} by an hour`, async (t) => {
    const { relay, connected, advance, step } = coreRelay()
    const client = await connected('42', { expire_at: 9e9 })
    step(stepMs)
    relay.tick()
    t.same(client.received(), [])
    await advance(18_749)
    t.same(client.received(), [])
    await advance(1)
    t.same(client.received(), [{}])
  })

  t.test(`a missing pong closes in time when the system clock is set ${direction} by an hour`, async (t) => {
    const { relay, connected, advance, step } = coreRelay()
    const client = await connected('42', { expire_at: 9e9 })
    await advance(18_750)
    step(stepMs)
    relay.tick()
    await advance(7999)
    t.equal(client.closed, null)
    await advance(1)
    t.equal(client.closed, '3012 no pong')
  })

  t.test(`a silent client is closed in time when the system clock is set ${direction} by an hour`, async (t) => {
    const { relay, client, advance, step } = coreRelay()
    const silent = client()
    step(stepMs)
    relay.tick()
    await advance(9999)
    t.equal(silent.closed, null)
    await advance(1)
    t.equal(silent.closed, '3502 stale')
  })

  t.test(`commands_per_second counts seconds when the system clock is set ${direction} by an hour`, async (t) => {
    const { connected, step } = coreRelay({ client: { commands_per_second: 3 } })
    const client = await connected('42')
    await client.send({ id: 2, rpc: {} }, { id: 3, rpc: {} })
    step(stepMs)
    await client.send({ id: 4, rpc: {} })

    t.equal(client.closed, '3013 too many requests')
  })

  t.test(`positions are checked in time when the system clock is set ${direction} by an hour`, async (t) => {
    let reads = 0
    const { relay, connected, advance, step, engine } = coreRelay(undefined, {
      history: {
        read: (...args) => {
          reads++
          return engine.read(...args)
        },
        remove: (channel) => engine.remove(channel)
      }
    })
    const client = await connected('42', { expire_at: 9e9 })
    await client.send({ id: 2, subscribe: { channel: 'floor:7', positioned: true } })
    await advance(0)
    step(stepMs)
    const before = reads
    relay.tick()
    t.equal(reads, before)
    await advance(40_000)
    t.equal(reads, before + 1)
  })
}

t.test('a connection expires after its ttl although the system clock was set back by an hour', async (t) => {
  const { client, advance, step, token } = coreRelay({ client: { ping_interval: '3600s' } })
  const connecting = client()
  t.match(await connecting.send({ id: 1, connect: { token: token({ sub: '42' }, 60) } }), [{ connect: { ttl: 60 } }])
  step(-HOUR_MS)
  await advance(84_999)
  t.equal(connecting.closed, null)
  await advance(1)
  t.equal(connecting.closed, '3005 connection expired')
})

t.test('a connection expires with its token when the system clock is set forward', async (t) => {
  const { relay, client, step, token } = coreRelay()
  const connecting = client()
  await connecting.send({ id: 1, connect: { token: token({ sub: '42' }, 60) } })
  step(84_999)
  relay.tick()
  t.equal(connecting.closed, null)
  step(1)
  relay.tick()
  t.equal(connecting.closed, '3005 connection expired')
})

t.test('a refreshed connection lives for its new ttl although the system clock was set back before', async (t) => {
  const { client, advance, step, token } = coreRelay({ client: { ping_interval: '3600s' } })
  const connecting = client()
  await connecting.send({ id: 1, connect: { token: token({ sub: '42' }, 60) } })
  step(-HOUR_MS)
  t.match(await connecting.send({ id: 2, refresh: { token: token({ sub: '42' }, 120) } }), [{ refresh: { ttl: 120 } }])
  await advance(144_999)
  t.equal(connecting.closed, null)
  await advance(1)
  t.equal(connecting.closed, '3005 connection expired')
})

t.test('a subscription expires after its ttl although the system clock was set back by an hour', async (t) => {
  const { connected, advance, step, token } = coreRelay({
    client: { ping_interval: '3600s' },
    channel: { namespaces: [{ name: 'floor', allow_subscribe_for_client: true }] }
  })
  const client = await connected('42')
  const subscribe = { channel: 'floor:7', token: token({ sub: '42', channel: 'floor:7' }, 60) }
  t.match(await client.send({ id: 2, subscribe }), [{ subscribe: { ttl: 60 } }])
  step(-HOUR_MS)
  await advance(84_999)
  t.same(client.received(), [])
  await advance(1)
  t.match(client.received(), [{ push: { channel: 'floor:7', unsubscribe: { code: 2501 } } }])
})

t.test('a subscription expires with its token when the system clock is set forward', async (t) => {
  const { relay, connected, step, token } = coreRelay({
    channel: { namespaces: [{ name: 'floor', allow_subscribe_for_client: true }] }
  })
  const client = await connected('42')
  await client.send({ id: 2, subscribe: { channel: 'floor:7', token: token({ sub: '42', channel: 'floor:7' }, 60) } })
  step(85_000)
  relay.tick()

  t.match(client.received(), [{ push: { channel: 'floor:7', unsubscribe: { code: 2501 } } }])
})
