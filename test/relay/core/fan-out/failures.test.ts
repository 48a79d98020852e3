import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import type { Disconnect } from '../../../../src/relay/core/codes.js'
import { EngineError, type RetainedPage } from '../../../../src/relay/core/engine.js'
import type { Publication } from '../../../../src/relay/core/publication.js'
import { NO_METRICS } from '../../../helper/no-metrics.js'
import { coreRelay, FakeSink, type Message } from '../../../helper/relay-core.js'

const CLOSED = '3004 internal server error'

/** Records log lines and counted errors. */
const recorder = () => {
  const logged: object[] = []
  const failed: string[] = []
  const note = (facts: object, message: string): void => void logged.push({ ...facts, message })
  return {
    logged,
    failed,
    parts: {
      log: { info: () => undefined, warn: () => undefined, error: note },
      metrics: { ...NO_METRICS, unexpectedError: (source: string) => void failed.push(source) }
    }
  }
}

/** A sink that throws, contrary to the contract of `ByteStream`. */
class BrokenSink extends FakeSink {
  isBroken = false

  override write(bytes: Buffer): void {
    if (this.isBroken) throw new Error('broken sink')
    super.write(bytes)
  }
}

class UnclosableSink extends FakeSink {
  override close(reason: Disconnect): void {
    super.close(reason)
    throw new Error('cannot close')
  }
}

const errors: [title: string, read: () => never | Promise<never>][] = [
  [
    'at once',
    () => {
      throw new Error('an internal error')
    }
  ],
  ['later', async () => Promise.reject(new Error('an internal error'))]
]
for (const [title, read] of errors) {
  t.test(
    `an unexpected error in a command (${title}) closes only its connection, and is logged and counted`,
    async (t) => {
      const { logged, failed, parts } = recorder()
      const { connected, relay } = coreRelay(undefined, { ...parts, history: { read, remove: async () => undefined } })
      const [client, other] = [await connected('42'), await connected('43')]
      await client.send({ id: 2, subscribe: { channel: 'floor:7' } })
      await setImmediate()

      t.equal(client.closed, CLOSED)
      t.match(logged, [{ err: { message: 'an internal error' }, message: 'internal error in a connection' }])
      t.same(failed, ['connection'])
      t.match(await other.send({ id: 2, unsubscribe: { channel: 'x' } }), [{ id: 2 }])
      t.same(relay.stats(), { clients: 1, users: 1, channels: 0, subscriptions: 0 })
    }
  )
}

t.test('a client whose transport throws', async (t) => {
  const channels: [title: string, channels: readonly string[]][] = [
    ['one channel', ['floor:7']],
    ['several channels in one turn', ['floor:7', 'floor:8']]
  ]
  for (const [title, names] of channels) {
    t.test(
      `a client whose transport throws is closed, and the others receive the publications on ${title}`,
      async (t) => {
        const { logged, failed, parts } = recorder()
        const { client, token, publish, endTurn, relay } = coreRelay(undefined, parts)
        const broken = new BrokenSink()
        const clients = [client(), client(broken), client()]
        for (const each of clients) {
          await each.send({ id: 1, connect: { token: token({ sub: '42' }) } })
          for (const channel of names) await each.send({ id: 2, subscribe: { channel } })
        }
        broken.isBroken = true
        for (const channel of names) publish(channel, 1)
        endTurn()

        for (const each of [clients[0], clients[2]]) t.equal(each?.received().length, names.length)
        endTurn()
        t.equal(clients[1]?.closed, CLOSED)
        t.match(logged, [{ err: { message: 'broken sink' } }])
        t.same(failed, ['connection'])
        t.equal(relay.stats().clients, 2)
        publish('floor:7', 2)
        t.match(clients[2]?.received(), [{ push: { pub: { data: 2 } } }])
      }
    )
  }
})

t.test(
  'a publication that cannot be encoded closes the subscribers of its channel, and is reported once',
  async (t) => {
    const { logged, failed, parts } = recorder()
    const { connected, publish, delivery, endTurn } = coreRelay(undefined, parts)
    const [first, second, elsewhere] = [await connected('1'), await connected('2'), await connected('3')]
    for (const each of [first, second]) await each.send({ id: 2, subscribe: { channel: 'floor:7' } })
    await elsewhere.send({ id: 2, subscribe: { channel: 'floor:8' } })
    const unreadable: Publication = {
      get data(): string {
        throw new Error('unreadable')
      },
      offset: 1,
      info: null,
      tags: null,
      time: 0,
      delta: false,
      version: 0
    }
    delivery.publication('floor:7', unreadable, 'epoch1')
    endTurn()

    for (const each of [first, second]) t.equal(each.closed, CLOSED)
    t.equal(logged.length, 1)
    t.match(logged, [{ err: { message: 'unreadable' }, channel: 'floor:7', message: 'internal error in a delivery' }])
    t.same(failed, ['delivery'])
    publish('floor:8', 1)
    t.match(elsewhere.received(), [{ push: { pub: { data: 1 } } }])
  }
)

t.test('an error while one connection is pinged does not affect the pings of others', async (t) => {
  const { client, connected, token, advance } = coreRelay()
  const broken = new BrokenSink()
  const before = await connected('1')
  const failing = client(broken)
  await failing.send({ id: 1, connect: { token: token({ sub: '42' }) } })
  const after = await connected('2')
  broken.isBroken = true
  await advance(18_750)

  t.equal(failing.closed, CLOSED)
  for (const each of [before, after]) t.same(each.received(), [{}])
})

t.test('an error while a subscription goes live closes that connection', async (t) => {
  const tasks: (() => void)[] = []
  const { client, token, publish, relay } = coreRelay(undefined, {
    delayPushAfterReply: (task) => void tasks.push(task)
  })
  const broken = new BrokenSink()
  const failing = client(broken)
  await failing.send({ id: 1, connect: { token: token({ sub: '42' }) } }, { id: 2, subscribe: { channel: 'floor:7' } })
  publish('floor:7', 1)
  broken.isBroken = true
  for (const task of tasks) task()

  t.equal(failing.closed, CLOSED)
  t.equal(relay.stats().subscriptions, 0)
})

t.test('an error after a client has caught up closes that connection', async (t) => {
  const { client, token, publish, endTurn } = coreRelay()
  const broken = new BrokenSink()
  const failing = client(broken)
  await failing.send({ id: 1, connect: { token: token({ sub: '42' }) } }, { id: 2, subscribe: { channel: 'floor:7' } })
  broken.isStuck = true
  for (const n of [1, 2]) {
    publish('floor:7', { data: [{ transmitterId: 'a', n }] })
    endTurn()
  }
  broken.isBroken = true
  broken.drain()
  endTurn()

  t.equal(failing.closed, CLOSED)
})

t.test('a connection whose transport fails to close is removed completely', async (t) => {
  const { client, token, relay } = coreRelay()
  const failing = client(new UnclosableSink())
  await failing.send({ id: 1, connect: { token: token({ sub: '42', channels: ['floor:7'] }) } })
  await failing.send('garbage')

  t.same(relay.stats(), { clients: 0, users: 0, channels: 0, subscriptions: 0 })
})

/** A history whose results the test provides one by one. */
const pendingHistory = () => {
  const reads: { resolve(page: RetainedPage): void; reject(error: Error): void }[] = []
  const read = (): Promise<RetainedPage> =>
    new Promise((resolve, reject) => {
      reads.push({ resolve, reject })
    })
  return { reads, history: { read, remove: async () => undefined } }
}

const PAGE: RetainedPage = { epoch: 'e', offset: 0, publications: [], oldest: 0 }

t.test('an unknown namespace after a valid channel in a token causes no unhandled rejection', async (t) => {
  const { reads, history } = pendingHistory()
  const { client, token, relay } = coreRelay(undefined, { history })
  const connecting = client()
  const channels = ['floor:1', 'removed:1']

  t.match(await connecting.send({ id: 1, connect: { token: token({ sub: '42', channels }) } }), [
    { id: 1, error: { code: 102 } }
  ])
  for (const { reject } of reads) reject(new EngineError('gone'))
  // An unhandled rejection would fail the test here.
  await setImmediate()
  t.same(relay.stats(), { clients: 1, users: 1, channels: 0, subscriptions: 0 })
})

t.test('a token with several failing channels is answered once, after all have failed', async (t) => {
  const { reads, history } = pendingHistory()
  const { client, token, relay } = coreRelay(undefined, { history })
  const connecting = client()
  await connecting.send({
    id: 1,
    connect: { token: token({ sub: '42', channels: ['floor:1', 'floor:2', 'floor:3'] }) }
  })
  reads[0]?.reject(new EngineError('gone'))
  reads[1]?.resolve(PAGE)
  await setImmediate()
  t.same(connecting.received(), [])
  reads[2]?.reject(new EngineError('gone'))
  await setImmediate()

  t.match(connecting.received(), [{ id: 1, error: { code: 100, temporary: true } }])
  t.same(relay.stats(), { clients: 1, users: 1, channels: 0, subscriptions: 0 }, 'successful subscriptions are removed')
})

t.test('subscribing a user by the API', async (t) => {
  const target = { user: '42', client: '', session: '' }
  const subscription = { channel: 'floor:7', expiresAt: 0, info: null, data: null, override: {}, recover: null }

  t.test('the API subscribes none of the connections of a user if one has reached channel_limit', async (t) => {
    const { reads, history } = pendingHistory()
    const { connected, relay } = coreRelay({ client: { channel_limit: 2 }, ...OPEN }, { history })
    const [first, full] = [await connected('42'), await connected('42')]
    for (const channel of ['open:1', 'open:2']) await full.send({ id: 2, subscribe: { channel } })

    t.match(await relay.surveyHandlers.handle('subscribe', { target, subscription }), { code: 106 })
    for (const { reject } of reads) reject(new EngineError('gone'))
    await setImmediate()
    t.same(first.received(), [])
    t.equal(relay.stats().subscriptions, 2)
  })

  t.test(
    'the API removes all new subscriptions of a user if one connection fails, before any client is notified',
    async (t) => {
      const { reads, history } = pendingHistory()
      const { connected, relay } = coreRelay(undefined, { history })
      const clients = [await connected('42'), await connected('42')]
      // A namespace without snapshots, whose first subscribers would share one read.
      const params = { target, subscription: { ...subscription, channel: 'global:all' } }
      const result = relay.surveyHandlers.handle('subscribe', params)
      await setImmediate()
      reads[0]?.resolve(PAGE)
      await setImmediate()
      reads[1]?.reject(new EngineError('gone'))

      await t.rejects(Promise.resolve(result), { name: 'EngineError' })
      for (const client of clients) t.same(client.received(), [])
      t.same(relay.stats(), { clients: 2, users: 1, channels: 0, subscriptions: 0 })
    }
  )
})

const OPEN: Message = {
  channel: {
    namespaces: [
      { name: 'open', allow_subscribe_for_client: true },
      { name: 'floor', history_size: 10, history_ttl: '60s', force_recovery: true }
    ]
  }
}
