import t from 'tap'
import type { Framing } from '../../../../src/relay/core/codec/transport.js'
import { EngineError, type RetainedPage } from '../../../../src/relay/core/engine.js'
import type { Publication } from '../../../../src/relay/core/publication.js'
import { MemoryPresence } from '../../../../src/relay/engine/memory-presence.js'
import { monotonicMs } from '../../../../src/shared/monotonic.js'
import { NO_METRICS } from '../../../helper/no-metrics.js'
import { coreRelay, FakeSink, type Message, publicationAt, settled, withNamespace } from '../../../helper/relay-core.js'
import { configOf } from '../../../helper/relay-rules.js'
import type { ServerMessage } from '../../../helper/server-message.js'

const WITH_HISTORY = { allow_subscribe_for_client: true, history_size: 10, history_ttl: '60s', force_recovery: true }

/** No pings while the clock advances. */
const NO_PINGS = { ping_interval: '10000000s' }

const rejectionOf = (messages: readonly ServerMessage[]): unknown => messages[0]?.error?.code ?? 'granted'

t.test('subscribe', async (t) => {
  const rejected: [channel: string, more: Message, code: unknown, title: string][] = [
    ['floor:7', {}, 'granted', 'the namespace is open'],
    ['global:all', { flag: 1 }, 'granted', 'a flag changes nothing'],
    ['foo', {}, 103, 'the default namespace is closed'],
    ['nope:foo', {}, 102, 'there is no such namespace'],
    ['floor:', {}, 'granted', 'an empty rest is a name too'],
    ['$floor:7', {}, 103, 'private channels need a token'],
    [`floor:${'x'.repeat(250)}`, {}, 107, 'it is 256 bytes long'],
    [`floor:${'x'.repeat(249)}`, {}, 'granted', 'it is 255 bytes long'],
    ['floor:é', {}, 107, 'it is not ASCII'],
    ['floor:a\nb', {}, 107, 'it has a newline'],
    ['floor:7', { type: 1 }, 103, 'the channel is not a map'],
    ['floor:7', { type: 4 }, 108, 'shared polls are not served'],
    ['floor:7', { tf: { key: 'a', cmp: 'eq', val: 'b' } }, 107, 'filters are not served'],
    ['floor:7', { token: 'a.b.c' }, 103, 'its token is forged']
  ]
  for (const [channel, more, code, title] of rejected) {
    t.test(
      `subscribing to ${JSON.stringify(channel.slice(0, 20))} with ${JSON.stringify(more)} is answered with ${code}: ${title}`,
      async (t) => {
        const client = await coreRelay().connected('42')

        t.equal(rejectionOf(await client.send({ id: 2, subscribe: { channel, ...more } })), code)
        t.equal(client.closed, null)
      }
    )
  }

  t.test('a second subscription and one above channel_limit are rejected', async (t) => {
    const client = await coreRelay({
      client: { channel_limit: 2 },
      channel: { namespaces: [{ name: 'chat', ...WITH_HISTORY }] }
    }).connected('42')
    await client.send({ id: 2, subscribe: { channel: 'chat:1' } })

    t.match(await client.send({ id: 3, subscribe: { channel: 'chat:1' } }), [
      { error: { code: 105, message: 'already subscribed' } }
    ])
    await client.send({ id: 4, subscribe: { channel: 'chat:2' } })
    t.match(await client.send({ id: 5, subscribe: { channel: 'chat:3' } }), [
      { error: { code: 106, message: 'limit exceeded' } }
    ])
  })

  t.test('the subscribe reply has the position, and later publications follow', async (t) => {
    const { connected, publish } = coreRelay()
    publish('floor:7', 'before')
    const client = await connected('42')

    t.same(await client.send({ id: 2, subscribe: { channel: 'floor:7' } }), [
      { id: 2, subscribe: { recoverable: true, positioned: true, epoch: 'epoch1', offset: 1 } }
    ])
    publish('floor:7', { x: 1 })
    publish('floor:8', 'elsewhere')
    t.same(client.received(), [{ push: { channel: 'floor:7', pub: { data: { x: 1 }, offset: 2 } } }])
  })

  t.test('the first publication of a stream carries its epoch', async (t) => {
    const { connected, publish } = coreRelay()
    const client = await connected('42')
    await client.send({ id: 2, subscribe: { channel: 'floor:7' } })
    publish('floor:7', 1)

    t.same(client.received(), [{ push: { channel: 'floor:7', pub: { data: 1, offset: 1, epoch: 'epoch1' } } }])
  })

  t.test('a client that subscribes after a publication in the same turn does not receive it', async (t) => {
    const { connected, publish } = coreRelay()
    const [early, late] = [await connected('1'), await connected('2')]
    await early.send({ id: 2, subscribe: { channel: 'floor:7' } })
    publish('floor:7', 1)
    late.client.handleFrame(JSON.stringify({ id: 2, subscribe: { channel: 'floor:7' } }))
    await settled()
    publish('floor:7', 2)

    t.match(early.received(), [{ push: { pub: { data: 1 } } }, { push: { pub: { data: 2 } } }])
    t.match(late.received(), [{ id: 2, subscribe: { offset: 1 } }, { push: { pub: { data: 2 } } }])
  })

  t.test('a publication follows the subscribe reply of the same frame', async (t) => {
    const { connected } = coreRelay(withNamespace({ ...WITH_HISTORY, allow_publish_for_client: true }))
    const received = await (await connected('42')).send(
      { id: 2, subscribe: { channel: 'chat:1' } },
      { id: 3, publish: { channel: 'chat:1', data: 1 } },
      { id: 4, subscribe: { channel: 'chat:2' } }
    )

    t.match(received, [{ id: 2 }, { id: 3 }, { id: 4 }, { push: { channel: 'chat:1' } }])
  })

  t.test('a user-limited channel accepts only its users', async (t) => {
    const { connected } = coreRelay(
      withNamespace({ allow_user_limited_channels: true, allow_subscribe_for_client: true })
    )

    t.equal(
      rejectionOf(await (await connected('42')).send({ id: 2, subscribe: { channel: 'chat:room#41,42' } })),
      'granted'
    )
    t.equal(rejectionOf(await (await connected('4')).send({ id: 2, subscribe: { channel: 'chat:room#41,42' } })), 103)
  })

  t.test('channel names must match channel_regex', async (t) => {
    const client = await coreRelay(
      withNamespace({ allow_subscribe_for_client: true, channel_regex: '^[a-zé]+$' })
    ).connected('42')

    t.equal(rejectionOf(await client.send({ id: 2, subscribe: { channel: 'chat:é' } })), 'granted')
    t.equal(rejectionOf(await client.send({ id: 3, subscribe: { channel: 'chat:7' } })), 107)
  })

  // V8 would evaluate the first pattern for years.
  for (const channel_regex of ['^(a+)+$', '^(?:a?){1000}$', '(?i)^A{1,200}$'])
    t.test(`the channel_regex ${channel_regex} rejects a name of 250 bytes that almost matches`, async (t) => {
      const client = await coreRelay(withNamespace({ allow_subscribe_for_client: true, channel_regex })).connected('42')

      t.equal(rejectionOf(await client.send({ id: 2, subscribe: { channel: `chat:${'a'.repeat(249)}!` } })), 107)
      t.equal(rejectionOf(await client.send({ id: 3, subscribe: { channel: 'chat:aaa' } })), 'granted')
    })
})

t.test('a subscription token', async (t) => {
  const setUp = async () => {
    const relay = coreRelay(withNamespace({}, NO_PINGS))
    const client = await relay.connected('42')
    const subscribe = async (claims: Message, channel = 'chat:1', lifetime = 60) =>
      client.send({ id: 2, subscribe: { channel, token: relay.token(claims, lifetime) } })
    return { ...relay, client, subscribe }
  }

  t.test('a subscription token grants a denied channel and a private channel', async (t) => {
    const { subscribe } = await setUp()

    t.same(await subscribe({ sub: '42', channel: 'chat:1', data: { hi: 1 } }), [
      { id: 2, subscribe: { expires: true, ttl: 60, data: { hi: 1 } } }
    ])
    t.equal(rejectionOf(await subscribe({ sub: '42', channel: '$chat:1' }, '$chat:1')), 'granted')
  })

  t.test('an expired subscription token is answered with 109', async (t) => {
    const { client, token, clock } = await setUp()
    const old = token({ sub: '42', channel: 'chat:1' }, 1)
    clock.nowMs += 1000

    t.equal(rejectionOf(await client.send({ id: 2, subscribe: { channel: 'chat:1', token: old } })), 109)
  })

  const mismatches: [title: string, claims: Message][] = [
    ['another channel', { sub: '42', channel: 'chat:2' }],
    ['another user', { sub: '43', channel: 'chat:1' }],
    ['another connection', { sub: '42', channel: 'chat:1', client: 'someone' }]
  ]
  for (const [title, claims] of mismatches) {
    t.test(`a subscription token for ${title} closes the connection`, async (t) => {
      const { client, subscribe } = await setUp()

      t.same(await subscribe(claims), [])
      t.equal(client.closed, '3500 invalid token')
    })
  }

  t.test('a subscription token without a channel is answered with 103', async (t) => {
    t.equal(rejectionOf(await (await setUp()).subscribe({ sub: '42' })), 103)
  })

  t.test('a subscription token can override namespace options', async (t) => {
    const { subscribe } = await setUp()
    const { client, subscribe: other } = await (async () => {
      const relay = coreRelay(withNamespace({ history_size: 10, history_ttl: '60s' }))
      const client = await relay.connected('42')
      return {
        client,
        subscribe: async (claims: Message) =>
          client.send({ id: 2, subscribe: { channel: 'chat:1', token: relay.token(claims, 60) } })
      }
    })()

    t.notMatch((await subscribe({ sub: '42', channel: 'chat:1', override: { force_recovery: { value: true } } }))[0], {
      subscribe: { recoverable: true }
    })
    t.match(await other({ sub: '42', channel: 'chat:1', override: { force_recovery: { value: true } } }), [
      { subscribe: { recoverable: true, positioned: true, epoch: 'epoch1' } }
    ])
    t.equal(client.closed, null)
  })

  t.test('sub_refresh extends the expiry of a subscription', async (t) => {
    const { client, subscribe, token, advance } = await setUp()
    await subscribe({ sub: '42', channel: 'chat:1' })
    await advance(50_000)
    t.same(
      await client.send({
        id: 3,
        sub_refresh: { channel: 'chat:1', token: token({ sub: '42', channel: 'chat:1' }, 100) }
      }),
      [{ id: 3, sub_refresh: { expires: true, ttl: 100 } }]
    )
    await advance(124_000)
    t.equal(client.client.subscriptions.size, 1)
    await advance(1000)
    t.match(client.received(), [
      { push: { channel: 'chat:1', unsubscribe: { code: 2501, reason: 'subscription expired' } } }
    ])
    t.equal(client.client.subscriptions.size, 0)
  })

  const refreshes: [title: string, request: (token: (claims: Message) => string) => Message, outcome: unknown][] = [
    ['of a channel it is not on', () => ({ channel: 'chat:9', token: 'x' }), 103],
    ['without a token', () => ({ channel: 'chat:1' }), 107],
    ['with a forged token', () => ({ channel: 'chat:1', token: 'a.b.c' }), '3500 invalid token'],
    [
      'with a token for another channel',
      (token) => ({ channel: 'chat:1', token: token({ sub: '42', channel: 'chat:2' }) }),
      '3500 invalid token'
    ],
    ['without a channel', () => ({ token: 'x' }), '3501 bad request']
  ]
  for (const [title, request, outcome] of refreshes) {
    t.test(`sub_refresh ${title} is answered with ${outcome}`, async (t) => {
      const { client, subscribe, token } = await setUp()
      await subscribe({ sub: '42', channel: 'chat:1' })
      const reply = await client.send({ id: 3, sub_refresh: request((claims) => token(claims, 60)) })

      t.equal(client.closed ?? rejectionOf(reply), outcome)
    })
  }

  t.test('sub_refresh with an expired token closes the connection with a code that allows reconnecting', async (t) => {
    const { client, subscribe, token, clock } = await setUp()
    await subscribe({ sub: '42', channel: 'chat:1' })
    const old = token({ sub: '42', channel: 'chat:1' }, 1)
    clock.nowMs += 2000
    await client.send({ id: 3, sub_refresh: { channel: 'chat:1', token: old } })

    t.equal(client.closed, '3006 subscription expired')
  })

  t.test('sub_refresh gives a subscription without a token the expiry of its token', async (t) => {
    const { connected, token, advance } = coreRelay(withNamespace({ allow_subscribe_for_client: true }, NO_PINGS))
    const client = await connected('42')
    await client.send({ id: 2, subscribe: { channel: 'chat:1' } })
    const refresh = { channel: 'chat:1', token: token({ sub: '42', channel: 'chat:1' }, 60) }

    t.same(await client.send({ id: 3, sub_refresh: refresh }), [{ id: 3, sub_refresh: { expires: true, ttl: 60 } }])
    await advance(84_000)
    t.same(client.received(), [])
    await advance(1000)
    t.match(client.received(), [{ push: { channel: 'chat:1', unsubscribe: { code: 2501 } } }])
  })
})

t.test('recovery', async (t) => {
  const setUp = (options: Message = WITH_HISTORY, file: Message = {}) => {
    const relay = coreRelay({ ...withNamespace(options), ...file })
    for (let data = 1; data <= 5; data++) relay.publish('chat:1', data)
    const recover = async (offset: number, epoch = 'epoch1', more: Message = {}) =>
      (
        await (
          await relay.connected('42')
        ).send({ id: 2, subscribe: { channel: 'chat:1', recover: true, offset, epoch, ...more } })
      )[0]
    return { ...relay, recover }
  }

  t.test('recovery sends the missed publications, starting at the position of the client', async (t) => {
    t.same(await (await setUp()).recover(3), {
      id: 2,
      subscribe: {
        recoverable: true,
        positioned: true,
        epoch: 'epoch1',
        offset: 3,
        publications: [
          { data: 4, offset: 4 },
          { data: 5, offset: 5 }
        ],
        recovered: true,
        was_recovering: true
      }
    })
  })

  t.test('recovery sends nothing if nothing was missed', async (t) => {
    t.same(await (await setUp()).recover(5), {
      id: 2,
      subscribe: {
        recoverable: true,
        positioned: true,
        epoch: 'epoch1',
        offset: 5,
        recovered: true,
        was_recovering: true
      }
    })
  })

  t.test('recovery fails if the engine cannot read a publication in the middle', async (t) => {
    const publications = [2, 4].map(publicationAt)
    const read = async () => ({ epoch: 'e', offset: 4, publications, oldest: 1 })
    const { connected } = coreRelay(withNamespace(WITH_HISTORY), { history: { read, remove: async () => undefined } })
    const recover = { channel: 'chat:1', recover: true, offset: 1, epoch: 'e' }

    t.same(await (await connected('42')).send({ id: 2, subscribe: recover }), [
      { id: 2, subscribe: { recoverable: true, positioned: true, epoch: 'e', offset: 4, was_recovering: true } }
    ])
  })

  t.test('recovery without an epoch uses the offset', async (t) => {
    t.match(await (await setUp()).recover(4, ''), { subscribe: { recovered: true, publications: [{ offset: 5 }] } })
  })

  const lost: [title: string, offset: number, epoch: string, options: Message, file: Message][] = [
    ['of another epoch', 5, 'other', WITH_HISTORY, {}],
    ['that the history has dropped', 1, 'epoch1', { ...WITH_HISTORY, history_size: 2 }, {}],
    ['that is ahead of the stream', 9, 'epoch1', WITH_HISTORY, {}],
    ['further back than a client may be', 0, 'epoch1', WITH_HISTORY, { client: { recovery_max_publication_limit: 3 } }]
  ]
  for (const [title, offset, epoch, options, file] of lost) {
    t.test(`recovery fails from a position ${title}, and the client starts at the end of the stream`, async (t) => {
      t.same(await (await setUp(options, file)).recover(offset, epoch), {
        id: 2,
        subscribe: { recoverable: true, positioned: true, epoch: 'epoch1', offset: 5, was_recovering: true }
      })
    })

    t.test(`subscribing from a position ${title} is answered with 112 if the client requests it`, async (t) => {
      const { relay, recover } = await setUp(options, file)

      t.same(await recover(offset, epoch, { flag: 3 }), {
        id: 2,
        error: { code: 112, message: 'unrecoverable position' }
      })
      t.equal(relay.stats().subscriptions, 0)
    })
  }

  t.test('recovery fails after the history has expired, and offsets continue', async (t) => {
    const { recover, advance, publish } = await setUp()
    await advance(60_000)

    t.match(await recover(3), { subscribe: { offset: 5, recovered: undefined, was_recovering: true } })
    t.match(publish('chat:1', 6), { offset: 6, epoch: 'epoch1' })
  })

  t.test('allow_recovery enables recovery for clients that request it', async (t) => {
    const allowed = await setUp({ ...WITH_HISTORY, force_recovery: false, allow_recovery: true })
    const closed = await setUp({ ...WITH_HISTORY, force_recovery: false })

    t.match(await allowed.recover(4, 'epoch1', { recoverable: true }), { subscribe: { recovered: true } })
    t.match(await allowed.recover(4), { subscribe: { recovered: undefined, was_recovering: true } })
    t.same(
      await closed.recover(4),
      { id: 2, subscribe: { was_recovering: true } },
      'the client learns that it missed something'
    )
  })

  t.test('recovery on a channel without history is answered with was_recovering', async (t) => {
    const { connected } = coreRelay(withNamespace({ allow_subscribe_for_client: true }))

    t.same(
      await (await connected('42')).send({
        id: 2,
        subscribe: { channel: 'chat:1', recover: true, offset: 4, epoch: 'e' }
      }),
      [{ id: 2, subscribe: { was_recovering: true } }]
    )
  })
})

t.test('a slow history', async (t) => {
  const page = (offset: number): RetainedPage => ({ epoch: 'e', offset, publications: [], oldest: 0 })
  const setUp = () => {
    let give = (_page: RetainedPage): void => undefined
    const page = new Promise<RetainedPage>((resolve) => {
      give = resolve
    })
    const relay = coreRelay(undefined, { history: { read: () => page, remove: async () => undefined } })
    const deliver = (offset: number) =>
      relay.delivery.publication(
        'floor:7',
        { data: String(offset), offset, info: null, tags: null, time: 0, delta: false, version: 0 },
        'e'
      )
    const settled = async (): Promise<void> => {
      for (let turn = 0; turn < 50; turn++) await Promise.resolve()
    }
    return { ...relay, give, deliver, settled }
  }

  t.test('publications while a slow history is read are sent once', async (t) => {
    const { connected, give, deliver, settled } = await setUp()
    const client = await connected('42')
    t.same(
      await client.send({ id: 2, subscribe: { channel: 'floor:7' } }, { id: 3, unsubscribe: { channel: 'x' } }),
      []
    )
    for (const offset of [4, 5, 6]) deliver(offset)
    give(page(5))
    await settled()
    deliver(7)

    t.match(client.received(), [
      { id: 2, subscribe: { offset: 5 } },
      { push: { pub: { offset: 6 } } },
      { id: 3, unsubscribe: {} },
      { push: { pub: { offset: 7 } } }
    ])
  })

  t.test('a gap of this node before the position in the reply does not end the subscription', async (t) => {
    const { connected, give, deliver, settled } = await setUp()
    const client = await connected('42')
    await client.send({ id: 2, subscribe: { channel: 'floor:7' } })
    for (const offset of [1, 3]) deliver(offset)
    give(page(3))
    await settled()
    deliver(4)

    t.match(client.received(), [{ id: 2, subscribe: { offset: 3 } }, { push: { pub: { offset: 4 } } }])
  })

  t.test('a join during a pending subscribe is not pushed before the reply', async (t) => {
    const { connected, give, settled, delivery, relay } = await setUp()
    const rules = configOf(
      withNamespace({
        allow_subscribe_for_client: true,
        join_leave: true,
        force_push_join_leave: true,
        history_size: 1,
        history_ttl: '60s',
        force_positioning: true
      })
    )
    relay.configure(rules)
    const subscribing = await connected('42')
    await subscribing.send({ id: 2, subscribe: { channel: 'chat:1' } })
    delivery.joinOrLeave('chat:1', 'join', '{"user":"1","client":"c"}')
    t.same(subscribing.received(), [])
    give(page(0))
    await settled()

    t.match(subscribing.received()[0], { id: 2, subscribe: {} })
  })

  t.test('an API unsubscribe during a pending subscribe makes it fail', async (t) => {
    const { connected, give, deliver, settled, relay } = await setUp()
    const client = await connected('42')
    await client.send({ id: 2, subscribe: { channel: 'floor:7' } })
    const target = { user: '42', client: '', session: '' }
    await relay.surveyHandlers.handle('unsubscribe', { target, channel: 'floor:7' })
    t.same(client.received(), [], 'a push before the reply would be followed by a success')
    t.same(relay.stats(), { clients: 1, users: 1, channels: 0, subscriptions: 0 })
    deliver(1)
    give(page(0))
    await settled()
    deliver(2)

    t.match(client.received(), [{ id: 2, error: { code: 103 } }])
    t.same(relay.stats(), { clients: 1, users: 1, channels: 0, subscriptions: 0 })
  })

  t.test('an API unsubscribe right after the reply is pushed when the client had time to process it', async (t) => {
    const later: (() => void)[] = []
    const { connected, relay } = coreRelay(undefined, { delayPushAfterReply: (task) => void later.push(task) })
    const client = await connected('42')
    t.match(await client.send({ id: 2, subscribe: { channel: 'floor:7' } }), [{ id: 2, subscribe: {} }])
    const target = { user: '42', client: '', session: '' }
    await relay.surveyHandlers.handle('unsubscribe', { target, channel: 'floor:7' })
    t.same(client.received(), [])
    for (const task of later) task()

    t.match(client.received(), [{ push: { channel: 'floor:7', unsubscribe: { code: 2000 } } }])
    t.equal(relay.stats().subscriptions, 0)
  })

  t.test('a first publication right after the reply to a client without a position has its epoch', async (t) => {
    const later: (() => void)[] = []
    const { connected, publish } = coreRelay(
      withNamespace({ allow_subscribe_for_client: true, history_size: 10, history_ttl: '60s' }),
      { delayPushAfterReply: (task) => void later.push(task) }
    )
    const client = await connected('42')
    await client.send({ id: 2, subscribe: { channel: 'chat:1' } })
    publish('chat:1', 1)
    for (const task of later) task()

    t.same(client.received(), [{ push: { channel: 'chat:1', pub: { data: 1, offset: 1, epoch: 'epoch1' } } }])
  })

  t.test('a subscription ahead of this node receives nothing until the node has caught up', async (t) => {
    const { connected, give, deliver, settled } = await setUp()
    const [first, second] = [await connected('1'), await connected('2')]
    await first.send({ id: 2, subscribe: { channel: 'floor:7' } })
    deliver(4)
    give(page(4))
    await settled()
    first.received()
    t.match(first.received(), [])
    t.match(await second.send({ id: 2, subscribe: { channel: 'floor:7' } }), [{ id: 2 }])
    deliver(5)

    t.match(first.received(), [{ push: { pub: { offset: 5 } } }])
    t.match(second.received(), [{ push: { pub: { offset: 5 } } }])
  })

  t.test('a subscription ahead of this node receives no publication twice', async (t) => {
    const position = { offset: 4 }
    const read = async () => page(position.offset)
    const { connected, delivery } = coreRelay(undefined, { history: { read, remove: async () => undefined } })
    const deliver = (offset: number) =>
      delivery.publication(
        'floor:7',
        { data: String(offset), offset, info: null, tags: null, time: 0, delta: false, version: 0 },
        'e'
      )
    const [first, second] = [await connected('1'), await connected('2')]
    await first.send({ id: 2, subscribe: { channel: 'floor:7' } })
    position.offset = 5
    await second.send({ id: 2, subscribe: { channel: 'floor:7' } })
    deliver(5)
    deliver(6)

    t.match(first.received(), [{ push: { pub: { offset: 5 } } }, { push: { pub: { offset: 6 } } }])
    t.match(second.received(), [{ push: { pub: { offset: 6 } } }])
  })

  t.test('a subscription ahead of this node receives publications without history at once', async (t) => {
    const position = { offset: 4 }
    const read = async () => page(position.offset)
    const { connected, delivery } = coreRelay(undefined, { history: { read, remove: async () => undefined } })
    const deliver = (offset: number, data = String(offset)) =>
      delivery.publication(
        'floor:7',
        { data, offset, info: null, tags: null, time: 0, delta: false, version: 0 },
        offset === 0 ? '' : 'e'
      )
    const [first, second] = [await connected('1'), await connected('2')]
    await first.send({ id: 2, subscribe: { channel: 'floor:7' } })
    position.offset = 5
    await second.send({ id: 2, subscribe: { channel: 'floor:7' } })
    deliver(0, '"now"')
    deliver(5)
    deliver(0, '"later"')
    deliver(6)

    t.match(second.received(), [
      { push: { pub: { data: 'now' } } },
      { push: { pub: { data: 'later' } } },
      { push: { pub: { offset: 6 } } }
    ])
  })

  /** The first client is at the offset 4 of `chat:1`. The next ones read the offset 5, which this node has not delivered yet. */
  const aheadRelay = async (options: Message, metrics = NO_METRICS) => {
    const position = { offset: 4 }
    const later: (() => void)[] = []
    const relay = coreRelay(withNamespace({ ...WITH_HISTORY, ...options }), {
      history: { read: async () => page(position.offset), remove: async () => undefined },
      delayPushAfterReply: (task) => void later.push(task),
      metrics
    })
    const goLive = (): void => {
      for (const task of later.splice(0)) task()
    }
    const first = await relay.connected('1')
    await first.send({ id: 2, subscribe: { channel: 'chat:1' } })
    goLive()
    position.offset = 5
    const deliver = (publication: Partial<Publication>): void =>
      relay.delivery.publication('chat:1', { ...publicationAt(0), ...publication }, 'e')
    return { ...relay, first, deliver, goLive }
  }

  t.test('a limited subscription ahead of this node receives what was buffered without history', async (t) => {
    const { connected, deliver, goLive } = await aheadRelay({ conflate: 'data[].id', allow_max_rate: true })
    const limited = await connected('2')
    await limited.send({ id: 2, subscribe: { channel: 'chat:1', data: { max_rate: 1 } } })
    deliver({ data: '"buffered"' })
    goLive()
    deliver({ data: '"live"' })

    t.same(
      limited.received().map(({ push }) => push?.pub?.data),
      ['buffered', 'live']
    )
  })

  t.test(
    'publications that the tag filter of a subscription ahead of this node rejects are counted once',
    async (t) => {
      const filteredOut: number[] = []
      const { connected, deliver, goLive } = await aheadRelay(
        { conflate: 'data[].id', allow_max_rate: true, allow_tags_filter: true },
        { ...NO_METRICS, filteredOut: (_namespace: string, count: number) => void filteredOut.push(count) }
      )
      const limited = await connected('2')
      const tf = { key: 'kind', cmp: 'eq', val: 'car' }
      await limited.send({ id: 2, subscribe: { channel: 'chat:1', data: { max_rate: 1 }, tf } })
      deliver({ data: '"rejected"' })
      deliver({ data: '"buffered"', tags: '{"kind":"car"}' })
      goLive()
      deliver({ data: '"rejected too"' })

      t.same(filteredOut, [1, 1])
    }
  )

  t.test('nothing is encoded for a filtered subscription that ended while it was ahead of this node', async (t) => {
    const { client, token, first, deliver, goLive } = await aheadRelay({ allow_tags_filter: true })
    let frames = 0
    const { framing } = first.sink
    const frame: Framing['frame'] = (message) => {
      frames++
      return framing.frame(message)
    }
    const ahead = client(new FakeSink(false, { ...framing, name: 'counted', frame }))
    const tf = { key: 'cell', cmp: 'eq', val: '1' }
    await ahead.send(
      { id: 1, connect: { token: token({ sub: '2' }) } },
      { id: 2, subscribe: { channel: 'chat:1', tf } }
    )
    goLive()
    const tags = '{"cell":"1"}'
    deliver({ data: '"live"', tags })
    t.match(ahead.received().at(-1), { push: { pub: { data: 'live' } } })
    await ahead.send({ id: 3, unsubscribe: { channel: 'chat:1' } })
    frames = 0
    deliver({ ...publicationAt(5), tags })

    t.match(first.received().at(-1), { push: { pub: { offset: 5 } } })
    t.equal(frames, 0)
  })

  t.test('a new epoch while the history is read ends the subscription with 2500', async (t) => {
    const later: (() => void)[] = []
    const read = async () => page(4)
    const parts = {
      history: { read, remove: async () => undefined },
      delayPushAfterReply: (task: () => void) => void later.push(task)
    }
    const { connected, delivery } = coreRelay(undefined, parts)
    const client = await connected('1')
    await client.send({ id: 2, subscribe: { channel: 'floor:7' } })
    delivery.publication(
      'floor:7',
      { data: '1', offset: 1, info: null, tags: null, time: 0, delta: false, version: 0 },
      'another'
    )
    for (const task of later) task()

    t.match(client.received(), [{ push: { unsubscribe: { code: 2500 } } }])
  })

  t.test('a gap after the history was read closes the connection', async (t) => {
    const { connected, give, deliver, settled } = await setUp()
    const client = await connected('42')
    await client.send({ id: 2, subscribe: { channel: 'floor:7' } })
    deliver(8)
    give(page(5))
    await settled()

    t.equal(client.closed, '3010 insufficient state')
  })

  t.test('a history result for a closed client is ignored', async (t) => {
    const { connected, give, settled, relay } = await setUp()
    const client = await connected('42')
    await client.send({ id: 2, subscribe: { channel: 'floor:7' } })
    client.client.connectionLost()
    give(page(5))
    await settled()

    t.same(relay.stats(), { clients: 0, users: 0, channels: 0, subscriptions: 0 })
  })

  t.test('reading from a client with many queued commands is paused, and all are answered in order', async (t) => {
    const { connected, give, settled } = await setUp()
    const client = await connected('42')
    await client.send({ id: 2, subscribe: { channel: 'floor:7' } })
    for (let id = 3; id <= 258; id++) await client.send({ id, unsubscribe: { channel: 'x' } })
    t.equal(client.sink.isPaused, false, 'a few hundred are kept')
    for (let id = 259; id <= 1000; id++) await client.send({ id, unsubscribe: { channel: 'x' } })
    t.equal(client.sink.isPaused, true)
    t.equal(client.closed, null)
    give(page(5))
    await settled()

    t.same(
      client.received().map(({ id }) => id),
      Array.from({ length: 999 }, (_, index) => index + 2)
    )
    t.equal(client.sink.isPaused, false)
  })

  t.test('reading from a client with long queued commands is paused', async (t) => {
    const client = await (await setUp()).connected('42')
    await client.send({ id: 2, subscribe: { channel: 'floor:7' } })
    await client.send({ id: 3, unsubscribe: { channel: 'x'.repeat(60_000) } })
    t.equal(client.sink.isPaused, false)
    await client.send({ id: 4, unsubscribe: { channel: 'x'.repeat(60_000) } })

    t.equal(client.sink.isPaused, true)
  })

  t.test('a client of an emulated transport is closed when more than one MiB of its commands waits', async (t) => {
    const { client, token } = await setUp()
    const emulated = client(new FakeSink(true))
    await emulated.send({ id: 1, connect: { token: token({ sub: '42' }) } })
    await emulated.send({ id: 2, subscribe: { channel: 'floor:7' } })
    const message = { id: 3, unsubscribe: { channel: 'x'.repeat(64 * 1024 - 40) } }
    for (let count = 0; count < 15; count++) await emulated.send(message)
    t.equal(emulated.closed, null)
    await emulated.send(message)
    await emulated.send(message)

    t.equal(emulated.closed, '3013 too many requests')
  })

  t.test('a client that is not read from is not closed for a missing pong', async (t) => {
    const { connected, give, advance, settled } = await setUp()
    const client = await connected('42')
    await client.send({ id: 2, subscribe: { channel: 'floor:7' } })
    for (let id = 3; id <= 400; id++) await client.send({ id, unsubscribe: { channel: 'x' } })
    await advance(18_750)
    for (let seconds = 0; seconds < 20; seconds++) await advance(1000)
    t.equal(client.closed, null, 'its pong may be in the unread data')
    give(page(5))
    await settled()
    for (let seconds = 0; seconds < 20; seconds++) await advance(1000)

    t.equal(client.closed, '3012 no pong', 'the relay reads from the client again')
  })
})

t.test('a broker that subscribes slowly', async (t) => {
  const setUp = async () => {
    let ready: { resolve(): void; reject(error: Error): void } = { resolve: () => undefined, reject: () => undefined }
    const listening = new Promise<void>((resolve, reject) => {
      ready = { resolve, reject }
    })
    const { engine } = coreRelay()
    const broker = { start: async () => undefined, subscribe: () => listening, unsubscribe: async () => undefined }
    const relay = coreRelay(undefined, { broker: Object.assign(Object.create(engine), broker) })
    const clients = [await relay.connected('1'), await relay.connected('2')]
    for (const client of clients) await client.send({ id: 2, subscribe: { channel: 'floor:7' } })
    const settled = async (): Promise<void> => {
      for (let turn = 0; turn < 20; turn++) await Promise.resolve()
    }
    return { relay, clients, ready, settled }
  }

  t.test('a second subscriber waits for the pending broker subscription', async (t) => {
    const { clients, ready, settled } = await setUp()
    for (const client of clients) t.same(client.received(), [], 'no client gets a reply before the broker subscription')
    ready.resolve()
    await settled()

    for (const client of clients) t.match(client.received(), [{ id: 2, subscribe: {} }])
  })

  t.test('a failed broker subscription is answered with an error to all waiting subscribers', async (t) => {
    const { relay, clients, ready, settled } = await setUp()
    ready.reject(new EngineError('gone'))
    await settled()

    for (const client of clients) t.match(client.received(), [{ id: 2, error: { code: 100, temporary: true } }])
    t.equal(relay.relay.stats().channels, 0)
  })
})

t.test('a broker that is down', async (t) => {
  const setUp = () => {
    const { engine } = coreRelay()
    const state = { isAway: true, subscribed: 0 }
    const subscribe = async (): Promise<void> => {
      if (state.isAway) throw new EngineError('away')
      state.subscribed++
    }
    const broker = Object.assign(Object.create(engine), {
      start: async () => undefined,
      subscribe,
      unsubscribe: async () => undefined
    })
    const relay = coreRelay(undefined, { broker })
    const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
    const look = () => relay.relay.observeChannel('floor:7', () => undefined)
    return { ...relay, state, settled, look }
  }

  t.test('clients can subscribe to an observed channel once the broker is back', async (t) => {
    const { connected, state, settled, look } = await setUp()
    look()
    await settled()
    state.isAway = false
    const client = await connected('42')
    t.match(await client.send({ id: 2, subscribe: { channel: 'floor:7' } }), [{ id: 2, subscribe: {} }])
  })

  t.test('the broker subscription of an observed channel is retried', async (t) => {
    const { state, settled, look, advance } = await setUp()
    look()
    await settled()
    await advance(1)
    await settled()
    state.isAway = false
    await advance(1)
    await settled()
    await advance(1)

    t.equal(state.subscribed, 1)
  })
})

t.test('a client that the API subscribes while its token is verified is answered with 105', async (t) => {
  let verify = (): void => undefined
  const claims = new Promise<Message>((resolve) => {
    verify = () => resolve({ sub: '42', channel: 'floor:7', exp: 9_999_999_999 })
  })
  const { connected, relay } = coreRelay(undefined, { checkSubscriptionToken: () => claims })
  const client = await connected('42')
  await client.send({ id: 2, subscribe: { channel: 'floor:7', token: 'x' } })
  const target = { user: '42', client: '', session: '' }
  const subscription = { channel: 'floor:7', expiresAt: 0, recover: null, info: null, data: null, override: {} }
  await relay.subscribeUser({ target, subscription })
  verify()
  await settled()

  t.match(client.received(), [{ push: { subscribe: {} } }, { id: 2, error: { code: 105 } }])
  t.equal(relay.stats().subscriptions, 1)
})

t.test('a subscribe fails if the engine begins to deliver only while the history is read', async (t) => {
  const { connected, engine } = coreRelay()
  const client = await connected('42')
  let calls = 0
  engine.isDelivering = () => ++calls > 1

  t.match(await client.send({ id: 2, subscribe: { channel: 'floor:7' } }), [{ id: 2, error: { code: 100 } }])
})

t.test('a client that unsubscribes while its presence is being added', async (t) => {
  const pushes: string[] = []
  let added = (): void => undefined
  const { engine } = coreRelay()
  const joinOrLeave = async (_channel: string, kind: string): Promise<void> => void pushes.push(kind)
  const relay = coreRelay(withNamespace({ ...WITH_HISTORY, presence: true, join_leave: true }), {
    broker: Object.assign(Object.create(engine), {
      start: async () => undefined,
      subscribe: async () => undefined,
      unsubscribe: async () => undefined,
      joinOrLeave
    }),
    history: {
      read: async () => ({ epoch: 'e', offset: 0, publications: [], oldest: 0 }),
      remove: async () => undefined
    },
    presence: Object.assign(new MemoryPresence({ nowMs: Date.now, monotonicMs }), {
      add: () =>
        new Promise<void>((resolve) => {
          added = resolve
        })
    })
  })
  const client = await relay.connected('42')
  await client.send({ id: 2, subscribe: { channel: 'chat:1' } })
  await client.send({ id: 3, unsubscribe: { channel: 'chat:1' } })
  added()
  await new Promise((resolve) => setImmediate(resolve))

  t.notOk(pushes.includes('join'), 'no join event follows the leave event')
})

t.test('unsubscribe', async (t) => {
  t.test('unsubscribe ends the publications, and succeeds a second time', async (t) => {
    const { connected, publish, relay } = coreRelay()
    const client = await connected('42')
    await client.send({ id: 2, subscribe: { channel: 'floor:7' } })
    publish('floor:7', 1)

    t.match(await client.send({ id: 3, unsubscribe: { channel: 'floor:7' } }), [
      { push: { pub: { data: 1 } } },
      { id: 3, unsubscribe: {} }
    ])
    publish('floor:7', 2)
    t.same(await client.send({ id: 4, unsubscribe: { channel: 'floor:7' } }), [{ id: 4, unsubscribe: {} }])
    t.equal(relay.stats().channels, 0)
  })

  t.test('unsubscribe works for a channel of the token', async (t) => {
    const { connected, publish, relay } = coreRelay()
    const client = await connected('42', { channels: ['floor:7'] })
    t.same(await client.send({ id: 2, unsubscribe: { channel: 'floor:7' } }), [{ id: 2, unsubscribe: {} }])
    publish('floor:7', 1)

    t.same(client.received(), [])
    t.equal(relay.stats().subscriptions, 0)
  })
})

t.test('subscribing fails if the engine stops delivering while the history is read', async (t) => {
  const options = { allow_subscribe_for_client: true, history_size: 5, history_ttl: '60s', force_positioning: true }
  const { connected, engine, relay } = coreRelay(withNamespace(options))
  const read = engine.read.bind(engine)
  engine.read = (...args) => {
    engine.isDelivering = () => false
    return read(...args)
  }
  const client = await connected('42')

  t.match(await client.send({ id: 2, subscribe: { channel: 'chat:1' } }), [{ id: 2, error: { code: 100 } }])
  t.equal(relay.stats().subscriptions, 0)
})

t.test('a client with a tag filter recovers from its position, whatever it receives', async (t) => {
  const options = {
    allow_subscribe_for_client: true,
    allow_tags_filter: true,
    history_size: 5,
    history_ttl: '60s',
    force_recovery: true
  }
  const { connected, publish } = coreRelay(withNamespace(options))
  for (const [index, kind] of ['a', 'a', 'b'].entries()) publish('chat:1', index, { tags: JSON.stringify({ kind }) })
  const recover = { channel: 'chat:1', recover: true, epoch: 'epoch1', offset: 1 }
  const recovered = async (val: string) => {
    const client = await connected('42')
    return await client.send({ id: 2, subscribe: { ...recover, tf: { key: 'kind', cmp: 'eq', val } } })
  }

  t.match(await recovered('b'), [{ subscribe: { recovered: true, offset: 1, publications: [{ offset: 3 }] } }])
  t.match(await recovered('c'), [{ subscribe: { recovered: true, offset: 1, publications: undefined } }])
})
