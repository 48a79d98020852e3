import t from 'tap'
import { ApiError } from '../../../src/client/api/api-error.js'
import type { Publication } from '../../../src/client/realtime/subscription-events.js'
import { startEventBackend } from '../../helper/event-backend.js'
import { eventually } from '../../helper/eventually.js'
import { nextEvent, nextOf, online, openRealtime, publishUntil, subscribed, USER } from '../../helper/realtime.js'
import { startRelay } from '../../helper/relay.js'
import { relayToken } from '../../helper/relay-rules.js'

const backend = await startEventBackend(t)

const HISTORY = { history_size: 100, history_ttl: '60s' }
const OPEN = { allow_subscribe_for_client: true }

const relay = await startRelay(t, {
  channel: {
    namespaces: [
      {
        name: 'orders',
        ...OPEN,
        ...HISTORY,
        allow_recovery: true,
        allow_positioning: true,
        allow_tags_filter: true,
        allowed_delta_types: ['fossil'],
        delta_publish: true,
        presence: true,
        join_leave: true,
        allow_presence_for_subscriber: true,
        allow_history_for_subscriber: true,
        allow_publish_for_subscriber: true
      },
      { name: 'rates', ...OPEN, conflate: 'data[].id', allow_max_rate: true },
      { name: 'private' }
    ]
  },
  rpc: { proxy: { endpoint: backend.endpoint('rpc') }, without_namespace: { proxy_enabled: true } }
})
const { publish, api } = relay

let count = 0
/** A channel that no other test uses. */
const newChannel = (namespace = 'orders'): string => {
  count += 1
  return `${namespace}:${count}`
}

/** The data of the publications of a handle, as they arrive. */
const collect = (handle: { on(name: 'publication', listener: (event: Publication) => void): unknown }): unknown[] => {
  const received: unknown[] = []
  handle.on('publication', ({ data }) => received.push(data))
  return received
}

const received = (values: readonly unknown[], length: number): Promise<unknown> =>
  eventually(() => values.length >= length, { label: `${length} publications` })

/** Closes the connections of the user; the client reconnects and recovers. */
const interrupt = () => api('disconnect', { user: USER, disconnect: { code: 3001, reason: 'a restart' } })

t.test('handles of one channel share a subscription, which the last one ends', async (t) => {
  const realtime = openRealtime(t, relay)
  const channel = newChannel()
  const one = realtime.subscribe(channel, { token: async () => '', recover: true, data: { a: 1, b: 2 } })
  one.unsubscribe()
  const first = realtime.subscribe(channel, { recover: true, data: { a: 1, b: 2 } })
  await subscribed(first)
  const second = realtime.subscribe(channel, { data: { b: 2, a: 1 }, recover: true })
  t.equal(second.state, 'subscribed')
  const [ofFirst, ofSecond] = [collect(first), collect(second)]
  await publish(channel, 1)
  await received(ofSecond, 1)
  first.unsubscribe()
  first.unsubscribe()
  t.equal(first.state, 'unsubscribed')
  t.equal(second.state, 'subscribed')
  await publish(channel, 2)
  await received(ofSecond, 2)
  t.same(ofFirst, [1], 'a released handle receives nothing more')
  const late = realtime.subscribe(channel, { recover: true, data: { a: 1, b: 2 } })
  t.match(late.latest, { channel, data: 2, offset: 2 }, 'a later handle has the newest publication')

  late.unsubscribe()
  second.unsubscribe()
  await eventually(() => !relay.relay.openChannels.has(channel))
  t.equal(relay.relay.stats().clients, 1, 'the connection stays open')
})

t.test('a channel that is open with other options throws at once', async (t) => {
  const realtime = openRealtime(t, relay)
  const channel = newChannel()
  realtime.subscribe(channel, { token: async () => 'one' })
  realtime.subscribe(channel, { token: async () => 'another' })
  for (const options of [{}, { token: 'a token' }, { token: async () => 'one', recover: true }])
    t.throws(
      () => realtime.subscribe(channel, options),
      new TypeError(`the channel ${channel} is open with other options`)
    )
  t.throws(() => realtime.map(channel), TypeError)
  t.throws(() => realtime.subscribe(newChannel(), { delta: true, filter: { key: 'a', cmp: 'ex' } }), /delta and filter/)
  t.throws(() => realtime.subscribe(newChannel(), { maxRate: 2, data: 'text' }), /must be an object/)
})

t.test('missed publications are recovered after a lost connection, and from a stored position', async (t) => {
  const realtime = openRealtime(t, relay)
  const channel = newChannel()
  await publish(channel, 'early')
  const handle = realtime.subscribe(channel, { recover: true })
  const values = collect(handle)
  await subscribed(handle)
  t.match(handle.position, { offset: 1, epoch: String })
  await publish(channel, 'live')
  await received(values, 1)
  realtime.stop()
  await publish(channel, 'missed')
  realtime.start()
  await received(values, 2)
  t.same(values, ['live', 'missed'])
  const { position } = handle
  t.match(position, { offset: 3 })

  // Another page of the application, with the stored position.
  await publish(channel, 'later 1')
  await publish(channel, 'later 2')
  const other = openRealtime(t, relay).subscribe(channel, { recover: position })
  const offsets: unknown[] = []
  other.on('publication', ({ offset }) => offsets.push([offset, other.position?.offset]))
  await received(offsets, 2)
  t.same(offsets, [
    [4, 4],
    [5, 5]
  ])
})

t.test('a position that the relay does not have is a gap, after which publications arrive', async (t) => {
  const realtime = openRealtime(t, relay)
  const channel = newChannel()
  const handle = realtime.subscribe(channel, { recover: { offset: 7, epoch: 'another' } })
  t.same(await nextOf(handle, 'gap'), { channel })
  const values = collect(handle)
  await publish(channel, 'after the gap')
  await received(values, 1)
  t.match(handle.position, { offset: 1 })
})

t.test('a subscription with deltas receives complete data', async (t) => {
  const realtime = openRealtime(t, relay)
  const channel = newChannel()
  const handle = realtime.subscribe(channel, { delta: true })
  const values = collect(handle)
  await subscribed(handle)
  const order = { id: 42, lines: Array.from({ length: 40 }, (_, line) => ({ line, item: `item ${line}` })) }
  await publish(channel, { ...order, total: 1 })
  await publish(channel, { ...order, total: 2 })
  await received(values, 2)
  t.same(values, [
    { ...order, total: 1 },
    { ...order, total: 2 }
  ])
})

t.test('a filter receives the publications with matching tags', async (t) => {
  const realtime = openRealtime(t, relay)
  const channel = newChannel()
  const handle = realtime.subscribe(channel, { filter: { key: 'status', cmp: 'eq', val: 'open' } })
  const publications: unknown[] = []
  handle.on('publication', ({ data, tags }) => publications.push([data, tags]))
  await subscribed(handle)
  await api('publish', { channel, data: 1, tags: { status: 'closed' } })
  await api('publish', { channel, data: 2, tags: { status: 'open' } })
  await received(publications, 1)
  t.same(publications, [[2, { status: 'open' }]])
})

t.test('a rate is granted by the relay, which merges the publications in between', async (t) => {
  const realtime = openRealtime(t, relay)
  const channel = newChannel('rates')
  const handle = realtime.subscribe(channel, { maxRate: 0.3, data: { of: 'this page' } })
  const values = collect(handle)
  await subscribed(handle)
  t.same(handle.replyData, { max_rate: 0.2 })
  for (const value of [1, 2, 3]) await publish(channel, { data: [{ id: 'a', value }] })
  await received(values, 1)
  relay.advance(10_000)
  await received(values, 2)
  t.same(values, [{ data: [{ id: 'a', value: 1 }] }, { data: [{ id: 'a', value: 3 }] }])
})

t.test('other data is a new subscription of all handles', async (t) => {
  const realtime = openRealtime(t, relay)
  const channel = newChannel('rates')
  const handle = realtime.subscribe(channel, { maxRate: 5, data: { a: 1 } })
  await subscribed(handle)
  const states: string[] = []
  handle.on('state', (state) => states.push(state))
  handle.setData({ a: 2 })
  await eventually(() => states.length === 2)
  t.same(states, ['subscribing', 'subscribed'])
  t.same(handle.replyData, { max_rate: 5 })
  t.throws(() => realtime.subscribe(channel, { maxRate: 5, data: { a: 1 } }), TypeError)
  t.equal(realtime.subscribe(channel, { maxRate: 5, data: { a: 2 } }).state, 'subscribed')
})

t.test('presence, join and leave show the other clients', async (t) => {
  const channel = newChannel()
  const handle = openRealtime(t, relay).subscribe(channel, { joinLeave: true })
  await subscribed(handle)
  const other = openRealtime(t, relay, {
    negotiate: async () => ({
      data: {
        url: `ws://127.0.0.1:${relay.port}/connection/websocket`,
        token: relayToken({ sub: 'ada', info: { name: 'Ada' } })
      }
    })
  }).subscribe(channel)
  const joined = await nextOf(handle, 'join')
  t.match(joined, { user: 'ada', connInfo: { name: 'Ada' } })
  t.same((await handle.presence()).map(({ user }) => user).toSorted(), [USER, 'ada'])
  t.same(await handle.presenceStats(), { numClients: 2, numUsers: 2 })
  other.unsubscribe()
  t.match(await nextOf(handle, 'leave'), { client: joined.client })
})

t.test('history has limits and positions, and a client publishes', async (t) => {
  const realtime = openRealtime(t, relay)
  const channel = newChannel()
  const handle = realtime.subscribe<number>(channel)
  // Before the connection is open.
  await handle.publish(1)
  await handle.publish(2)
  await realtime.publish(channel, 3)
  const { publications, ...position } = await handle.history()
  t.same(
    publications.map(({ data, offset }) => [data, offset]),
    [
      [1, 1],
      [2, 2],
      [3, 3]
    ]
  )
  t.match(publications[0], { info: { user: USER } })
  t.match(position, { offset: 3, epoch: String })
  const dataOf = async (options: Parameters<typeof handle.history>[0]) =>
    (await realtime.history<number>(channel, options)).publications.map(({ data }) => data)
  t.same(await dataOf({ limit: 2 }), [1, 2])
  t.same(await dataOf({ since: { ...position, offset: 1 } }), [2, 3])
  t.same(await dataOf({ reverse: true, limit: 1 }), [3])
})

t.test('calls reach the backend, and their errors have its code', async (t) => {
  const realtime = openRealtime(t, relay)
  backend.on('rpc', ({ body }) => ({ result: { data: { asked: body.method, ...Object(body.data) } } }))
  t.same(await realtime.rpc<{ asked: string }>('count', { n: 7 }), { asked: 'count', n: 7 })
  backend.on('rpc', { error: { code: 404, message: 'unknown item' } })
  await t.rejects(realtime.rpc('buy'), { name: 'RelayError', code: 404, message: 'unknown item', temporary: false })
  await t.rejects(realtime.presence(newChannel('private')), { name: 'RelayError', code: 108 })
  await t.rejects(realtime.presenceStats(newChannel('private')), { code: 108 })
})

t.test('a rejected channel has an error, and subscribing again tries again', async (t) => {
  const realtime = openRealtime(t, relay)
  const channel = newChannel('private')
  const refused = nextEvent(realtime, 'refused')
  const handle = realtime.subscribe(channel)
  t.equal(handle.state, 'subscribing')
  t.match(await nextOf(handle, 'error'), { name: 'RelayError', code: 103, message: 'permission denied' })
  t.match(await refused, { channel, code: 103, retryable: false })
  t.equal(handle.state, 'unsubscribed')
  await t.rejects(handle.presence(), { name: 'RelayError', code: 7 })
  await t.rejects(
    async () => {
      for await (const publication of handle) t.fail(`unexpected ${publication}`)
    },
    { code: 103 }
  )

  const errors: number[] = []
  handle.on('error', ({ code }) => errors.push(code))
  realtime.subscribe(channel)
  await eventually(() => errors.length === 1)
  t.same(errors, [103])
  const unknown = realtime.subscribe('no-such-namespace:1')
  t.match(await nextOf(unknown, 'error'), { code: 102 })
})

t.test('a subscription token is requested, and again before it expires', async (t) => {
  const realtime = openRealtime(t, relay)
  const channel = newChannel('private')
  const asked: string[] = []
  const handle = realtime.subscribe(channel, {
    token: async (of) => {
      asked.push(of)
      // Failures of the service are retried.
      if (asked.length === 1) throw new ApiError({ code: 'NETWORK_FAILED', message: 'none' })
      return relayToken({ sub: USER, channel: of }, { lifetimeSeconds: asked.length === 2 ? 1 : 3600 })
    }
  })
  t.match(await nextOf(handle, 'error'), { code: 8, temporary: true })
  t.equal(handle.state, 'subscribing')
  await subscribed(handle)
  t.equal(handle.error, null)
  await eventually(() => asked.length === 3)
  t.same(asked, [channel, channel, channel])
  const values = collect(handle)
  await publish(channel, 'with the new token')
  await received(values, 1)
  t.equal(handle.state, 'subscribed')
})

t.test('a token that has expired is replaced, and one that the service rejects ends the subscription', async (t) => {
  const realtime = openRealtime(t, relay)
  const channel = newChannel('private')
  const past = { nowMs: Date.now() - 60_000, lifetimeSeconds: 1 }
  const handle = realtime.subscribe(channel, { token: relayToken({ sub: USER, channel }) })
  await subscribed(handle)
  handle.unsubscribe()
  let times = 0
  const renewed = realtime.subscribe(channel, {
    token: async () => {
      times += 1
      return relayToken({ sub: USER, channel }, times === 1 ? past : {})
    }
  })
  t.match(await nextOf(renewed, 'error'), { code: 109, temporary: true })
  await subscribed(renewed)

  const rejected = realtime.subscribe(newChannel('private'), {
    token: async () => {
      throw new ApiError({ code: 'FORBIDDEN', message: 'Not yours.', status: 403 })
    }
  })
  t.match(await nextOf(rejected, 'error'), { code: 1, temporary: false })
  t.equal(rejected.state, 'unsubscribed')
})

t.test('an iterator delivers publications until the handle is released', async (t) => {
  const realtime = openRealtime(t, relay)
  const channel = newChannel()
  const handle = realtime.subscribe<number>(channel)
  await subscribed(handle)
  const values: number[] = []
  const loop = (async () => {
    for await (const { data } of handle) {
      values.push(data)
      if (data === 2) handle.unsubscribe()
    }
  })()
  for (const value of [1, 2, 3]) await publish(channel, value)
  await loop
  t.same(values, [1, 2])

  const left = realtime.subscribe<number>(channel)
  await subscribed(left)
  const first = (async () => {
    for await (const { data } of left) return data
    return null
  })()
  t.match(await publishUntil(first, () => publish(channel, 4)), 4)
  t.equal(left.state, 'unsubscribed', 'leaving the loop unsubscribes')
})

t.test('closing the client ends all subscriptions and iterators', async (t) => {
  const realtime = openRealtime(t, relay)
  const handle = realtime.subscribe(newChannel())
  const next = handle[Symbol.asyncIterator]().next()
  await subscribed(handle)
  realtime.close()
  t.same(await next, { value: undefined, done: true })
  t.equal(handle.state, 'unsubscribed')
  t.equal(realtime.state, 'offline')
})

t.test('a lost connection makes subscriptions wait, and they continue', async (t) => {
  const realtime = openRealtime(t, relay)
  const channel = newChannel()
  const handle = realtime.subscribe(channel, { recover: true })
  await subscribed(handle)
  const states: string[] = []
  handle.on('state', (state) => states.push(state))
  const values = collect(handle)
  const back = online(realtime)
  await interrupt()
  await publish(channel, 'meanwhile')
  await back
  await received(values, 1)
  t.same(states, ['subscribing', 'subscribed'])
})
