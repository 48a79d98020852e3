import t from 'tap'
import type { JoinOrLeave } from '../../../../src/relay/core/engine.js'
import { NO_METRICS } from '../../../helper/no-metrics.js'
import { coreRelay, type Message, type TestRelay, withNamespace } from '../../../helper/relay-core.js'
import type { ServerMessage } from '../../../helper/server-message.js'

const OPEN = { allow_subscribe_for_client: true }
const rejectionOf = (messages: readonly ServerMessage[]): unknown => messages[0]?.error?.code ?? 'granted'

t.test('permissions of client commands', async (t) => {
  const cases: [command: Message, options: Message, code: unknown, title: string][] = [
    [{ publish: { channel: 'nope:1', data: {} } }, {}, 102, 'no such namespace'],
    [{ publish: { channel: 'chat:é', data: {} } }, {}, 107, 'no such name'],
    [{ publish: { channel: 'chat:1' } }, { allow_publish_for_client: true }, 107, 'no data'],
    [{ publish: { channel: 'chat:1', data: {} } }, {}, 103, 'closed'],
    [{ publish: { channel: 'chat:1', data: {} } }, { allow_publish_for_client: true }, 'granted', 'open'],
    [{ publish: { channel: 'chat:1', data: null } }, { allow_publish_for_client: true }, 'granted', 'null is data'],
    [{ publish: { channel: 'chat:1', data: {} } }, { allow_publish_for_subscriber: true }, 103, 'only for subscribers'],
    [{ presence: { channel: 'nope:1' } }, {}, 102, 'no such namespace'],
    [{ presence: { channel: 'chat:1' } }, { allow_presence_for_client: true }, 108, 'there is none'],
    [{ presence: { channel: 'chat:1' } }, { presence: true }, 103, 'closed'],
    [{ presence: { channel: 'chat:1' } }, { presence: true, allow_presence_for_client: true }, 'granted', 'open'],
    [{ presence_stats: { channel: 'chat:1' } }, {}, 108, 'there are none'],
    [{ presence_stats: { channel: 'chat:1' } }, { presence: true }, 103, 'closed'],
    [{ history: { channel: 'nope:1' } }, {}, 102, 'no such namespace'],
    [{ history: { channel: 'chat:1' } }, { allow_history_for_client: true }, 108, 'there is none'],
    [{ history: { channel: 'chat:1' } }, { history_size: 5, history_ttl: '60s' }, 103, 'closed'],
    [
      { history: { channel: 'chat:1' } },
      { history_size: 5, history_ttl: '60s', allow_history_for_subscriber: true },
      103,
      'only for subscribers'
    ]
  ]
  for (const [command, options, code, title] of cases) {
    t.test(`the command ${JSON.stringify(command)} is answered with ${code}: ${title}`, async (t) => {
      const client = await coreRelay(withNamespace({ ...OPEN, ...options })).connected('42')

      t.equal(rejectionOf(await client.send({ id: 2, ...command })), code)
    })
  }

  t.test('an insecure relay allows every command', async (t) => {
    const { client } = coreRelay({
      client: { insecure: true },
      channel: { namespaces: [{ name: 'chat', presence: true, history_size: 5, history_ttl: '60s' }] }
    })
    const tester = client()
    await tester.send({ id: 1, connect: {} })

    for (const command of [
      { subscribe: { channel: 'chat:1' } },
      { publish: { channel: 'chat:1', data: 1 } },
      { presence: { channel: 'chat:1' } },
      { history: { channel: 'chat:1' } }
    ]) {
      t.equal(rejectionOf(await tester.send({ id: 2, ...command })), 'granted')
    }
  })
})

t.test('a publication of a client', async (t) => {
  t.test('a publication of a client carries its client info and its data unchanged', async (t) => {
    const { connected } = coreRelay(withNamespace({ ...OPEN, allow_publish_for_subscriber: true }))
    const client = await connected('42', { info: { name: 'Ada' } })
    await client.send({ id: 2, subscribe: { channel: 'chat:1' } })
    await client.send('{"id":3,"publish":{"channel":"chat:1","data":{"n":1.00, "big":12345678901234567890}}}')

    t.match(client.sink.writes.at(-1), '"data":{"n":1.00, "big":12345678901234567890}')
    t.match(client.sink.writes.at(-1), '"info":{"user":"42","client":"id-2","conn_info":{"name":"Ada"}}')
  })

  t.test('a client can publish deeply nested data', async (t) => {
    const { connected } = coreRelay(withNamespace({ ...OPEN, allow_publish_for_subscriber: true }))
    const client = await connected('42')
    await client.send({ id: 2, subscribe: { channel: 'chat:1' } })
    const deep = `${'['.repeat(30_000)}${']'.repeat(30_000)}`
    client.client.handleFrame(`{"id":3,"publish":{"channel":"chat:1","data":${deep}}}`)
    client.received()

    t.ok(client.sink.writes.at(-1)?.includes(deep))
    t.equal(client.closed, null)
  })
})

const announce = (relay: TestRelay, kind: JoinOrLeave, info: string): void =>
  relay.delivery.joinOrLeave('chat:1', kind, info)

t.test('presence', async (t) => {
  const PRESENT = { ...OPEN, presence: true, join_leave: true, allow_presence_for_subscriber: true }

  t.test('presence lists the clients of a channel, and presence_stats counts them', async (t) => {
    const { connected } = coreRelay(withNamespace(PRESENT))
    const [ada, bob] = [await connected('ada', { info: { a: 1 } }), await connected('bob')]
    await ada.send({ id: 2, subscribe: { channel: 'chat:1' } })
    await bob.send({ id: 2, subscribe: { channel: 'chat:1' } })

    t.same(await ada.send({ id: 3, presence: { channel: 'chat:1' } }), [
      {
        id: 3,
        presence: {
          presence: {
            'id-2': { user: 'ada', client: 'id-2', conn_info: { a: 1 } },
            'id-3': { user: 'bob', client: 'id-3' }
          }
        }
      }
    ])
    bob.client.connectionLost()
    t.same(await ada.send({ id: 4, presence_stats: { channel: 'chat:1' } }), [
      { id: 4, presence_stats: { num_clients: 1, num_users: 1 } }
    ])
  })

  t.test('a client that requests join and leave pushes receives them after its own reply', async (t) => {
    const { connected } = coreRelay(withNamespace(PRESENT))
    const [ada, bob, eve] = [await connected('ada'), await connected('bob'), await connected('eve')]
    const received = await ada.send({ id: 2, subscribe: { channel: 'chat:1', join_leave: true } })
    await eve.send({ id: 2, subscribe: { channel: 'chat:1' } })
    ada.received()
    await bob.send({ id: 2, subscribe: { channel: 'chat:1', join_leave: true } })

    t.match(received, [{ id: 2 }, { push: { join: { info: { user: 'ada', client: 'id-2' } } } }])
    t.match(ada.received(), [{ push: { channel: 'chat:1', join: { info: { user: 'bob', client: 'id-3' } } } }])
    await bob.send({ id: 3, unsubscribe: { channel: 'chat:1' } })
    t.match(ada.received(), [{ push: { channel: 'chat:1', leave: { info: { user: 'bob' } } } }])
    t.same(eve.received(), [], 'a client that did not send the command receives nothing')
  })

  t.test('a join is not pushed before a subscribe reply that waits for the next reply', async (t) => {
    const never = new Promise<never>(() => undefined)
    const presence = { add: () => never, remove: () => never, read: () => never, count: () => never }
    const options = { ...PRESENT, join_leave: true, force_push_join_leave: true }
    const relay = coreRelay(withNamespace(options), { presence, checkSubscriptionToken: () => never })
    const [ada, bob] = [await relay.connected('ada'), await relay.connected('bob')]
    await ada.send({ id: 2, subscribe: { channel: 'chat:1' } })
    announce(relay, 'join', '{"user":"1","client":"1"}')

    t.match(
      await bob.send(
        { id: 2, subscribe: { channel: 'chat:1' } },
        { id: 3, subscribe: { channel: 'chat:2', token: 'pending' } }
      ),
      [{ id: 2, subscribe: {} }, { push: { join: { info: { user: '1' } } } }]
    )
  })

  t.test('the joins and leaves of one turn are one write to each subscriber', async (t) => {
    const relay = coreRelay(withNamespace({ ...OPEN, join_leave: true, force_push_join_leave: true }))
    const ada = await relay.connected('ada')
    await ada.send({ id: 2, subscribe: { channel: 'chat:1' } })
    const before = ada.sink.writes.length
    for (let n = 1; n <= 3; n++) {
      announce(relay, 'join', `{"user":"${n}","client":"${n}"}`)
      announce(relay, 'leave', `{"user":"${n}","client":"${n}"}`)
    }

    t.match(
      ada.received(),
      ['1', '2', '3'].flatMap((user) => [
        { push: { channel: 'chat:1', join: { info: { user, client: user } } } },
        { push: { channel: 'chat:1', leave: { info: { user } } } }
      ])
    )
    t.equal(ada.sink.writes.length, before + 1)
  })

  t.test('in a large channel joins and leaves wait, and every client has the last ones in the end', async (t) => {
    const SUBSCRIBERS = 500
    const options = { ...OPEN, join_leave: true, force_push_join_leave: true }
    const relay = coreRelay(withNamespace(options, { ping_interval: '1000s' }))
    const subscribers = []
    for (let index = 0; index < SUBSCRIBERS; index++) {
      const client = await relay.connected(`${index}`)
      await client.send({ id: 2, subscribe: { channel: 'chat:1' } })
      subscribers.push(client)
    }
    await relay.advance(10_000)
    for (const client of subscribers) client.received()
    const [first] = subscribers
    const before = first?.sink.writes.length ?? 0
    const toggling = '{"user":"t","client":"t"}'
    const present = new Set<string | undefined>()
    const follow = (): void => {
      for (const { push } of first?.received() ?? []) {
        const { join, leave } = (push ?? {}) as Partial<
          Record<JoinOrLeave, { readonly info: { readonly user: string } }>
        >
        if (join !== undefined) present.add(join.info.user)
        else present.delete(leave?.info.user)
      }
    }
    for (let n = 0; n < 1000; n++) {
      announce(relay, 'join', toggling)
      relay.endTurn()
      announce(relay, n % 10 === 0 ? 'join' : 'leave', n % 10 === 0 ? `{"user":"${n}","client":"${n}"}` : toggling)
      relay.endTurn()
      await relay.advance(5)
      follow()
    }
    const writes = (first?.sink.writes.length ?? 0) - before
    t.ok(writes >= 20 && writes <= 32, `${writes} writes in 5 seconds`)
    await relay.advance(1000)
    follow()

    t.equal(present.size, 100, 'all that joined, without the one that left')
    t.equal(relay.pendingTimers, 0)
  })

  t.test('joins and leaves beyond 10,000 clients that wait are dropped and counted', async (t) => {
    let dropped = 0
    const relay = coreRelay(withNamespace({ ...OPEN, join_leave: true, force_push_join_leave: true }), {
      metrics: { ...NO_METRICS, joinOrLeaveDropped: () => void dropped++ }
    })
    const ada = await relay.connected('ada')
    await ada.send({ id: 2, subscribe: { channel: 'chat:1' } })
    for (let n = 0; n < 10_007; n++) announce(relay, 'join', `{"user":"${n}","client":"${n}"}`)
    t.equal(dropped, 7)
    t.match(ada.received(), [{ push: { join: { info: { user: '7' } } } }])
    ada.client.connectionLost()
    t.equal(relay.pendingTimers, 0, 'nothing waits without subscribers')
  })

  t.test('force_push_join_leave sends join and leave pushes to all subscribers', async (t) => {
    const { connected } = coreRelay(withNamespace({ ...OPEN, join_leave: true, force_push_join_leave: true }))
    const [ada, bob] = [await connected('ada'), await connected('bob')]
    await ada.send({ id: 2, subscribe: { channel: 'chat:1' } })
    await bob.send({ id: 2, subscribe: { channel: 'chat:1' } })

    t.match(ada.received(), [{ push: { join: { info: { user: 'bob' } } } }])
  })
})

t.test('history', async (t) => {
  const setUp = async (client: Message = {}) => {
    const relay = coreRelay(
      withNamespace({ ...OPEN, history_size: 5, history_ttl: '60s', allow_history_for_client: true }, client)
    )
    for (let data = 1; data <= 7; data++) relay.publish('chat:1', data)
    const requester = await relay.connected('42')
    const readHistory = async (request: Message): Promise<ServerMessage | undefined> =>
      (await requester.send({ id: 2, history: { channel: 'chat:1', ...request } }))[0]
    const offsets = async (request: Message): Promise<unknown> =>
      (await readHistory(request))?.history?.publications?.map(({ offset }) => offset)
    return { ...relay, readHistory, offsets }
  }
  const TOP = { offset: 7, epoch: 'epoch1' }

  t.test('history without a limit returns the position only', async (t) => {
    t.same(await (await setUp()).readHistory({}), { id: 2, history: { publications: [], ...TOP } })
    t.same(await (await setUp()).readHistory({ limit: 0 }), { id: 2, history: { publications: [], ...TOP } })
  })

  const ranges: [request: Message, offsets: number[]][] = [
    [{ limit: -1 }, [3, 4, 5, 6, 7]],
    [{ limit: 2 }, [3, 4]],
    [{ limit: 2, reverse: true }, [7, 6]],
    [{ limit: -1, since: { offset: 5, epoch: 'epoch1' } }, [6, 7]],
    [{ limit: 1, since: { offset: 5 } }, [6]],
    [{ limit: -1, since: { offset: 0 } }, [3, 4, 5, 6, 7]],
    [{ limit: -1, since: { offset: 9 } }, []],
    [{ limit: -1, since: { offset: 5 }, reverse: true }, [4, 3]],
    [{ limit: -1, since: { offset: 2 }, reverse: true }, []]
  ]
  for (const [request, offsets] of ranges) {
    t.test(`history with ${JSON.stringify(request)} returns the offsets ${offsets}`, async (t) => {
      t.same(await (await setUp()).offsets(request), offsets)
    })
  }

  t.test('history_max_publication_limit limits one history reply', async (t) => {
    const { offsets } = await setUp({ history_max_publication_limit: 2 })

    t.same(await offsets({ limit: -1 }), [3, 4])
    t.same(await offsets({ limit: 100 }), [3, 4])
  })

  t.test('history is answered with 112 for another epoch, and with 107 in reverse from offset 0', async (t) => {
    t.match(await (await setUp()).readHistory({ limit: 1, since: { offset: 5, epoch: 'other' } }), {
      error: { code: 112 }
    })
    t.match(await (await setUp()).readHistory({ limit: 1, since: { offset: 0 }, reverse: true }), {
      error: { code: 107 }
    })
  })
})

t.test('published data has no carriage return, which ends a line of server-sent events', async (t) => {
  const allowed = { allow_subscribe_for_client: true, allow_publish_for_client: true }
  const { connected } = coreRelay(withNamespace(allowed))
  const [publisher, subscriber] = [await connected('1'), await connected('2')]
  await subscriber.send({ id: 2, subscribe: { channel: 'chat:1' } })
  t.match(await publisher.send('{"id":2,"publish":{"channel":"chat:1","data":{"a":\r1.50}}}'), [{ id: 2, publish: {} }])
  subscriber.received()

  t.match(subscriber.sink.writes.at(-1), '"data":{"a": 1.50}')
})
