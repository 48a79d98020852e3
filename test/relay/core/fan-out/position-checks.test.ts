import t from 'tap'
import { EngineError } from '../../../../src/relay/core/engine.js'
import { coreRelay, publicationAt } from '../../../helper/relay-core.js'
import { configOf } from '../../../helper/relay-rules.js'

const WITH_HISTORY = { allow_subscribe_for_client: true, history_size: 10, history_ttl: '60s', force_recovery: true }

/** No pings while the clock advances. */
const NO_PINGS = { ping_interval: '10000000s' }

t.test('the position of a channel', async (t) => {
  const setUp = async () => {
    let top = { epoch: 'e', offset: 3 }
    const relay = coreRelay(
      { client: NO_PINGS, channel: { namespaces: [{ name: 'floor', ...WITH_HISTORY }] } },
      {
        history: { read: async () => ({ ...top, publications: [], oldest: 0 }), remove: async () => undefined }
      }
    )
    const client = await relay.connected('42')
    await client.send({ id: 2, subscribe: { channel: 'floor:7' } })
    const deliver = (offset: number, epoch = 'e') => relay.delivery.publication('floor:7', publicationAt(offset), epoch)
    return {
      ...relay,
      client,
      deliver,
      moveTop: (offset: number, epoch = 'e') => {
        top = { epoch, offset }
      }
    }
  }
  const LOST = [{ push: { channel: 'floor:7', unsubscribe: { code: 2500, reason: 'insufficient state' } } }]

  t.test('a gap in the offsets ends the subscription with 2500', async (t) => {
    const { client, deliver, relay } = await setUp()
    deliver(5)

    t.match(client.received(), LOST)
    t.equal(relay.stats().subscriptions, 0)
  })

  t.test('another epoch ends the subscription with 2500', async (t) => {
    const { client, deliver } = await setUp()
    deliver(4, 'other')

    t.match(client.received(), LOST)
  })

  t.test('a publication that was already delivered is ignored', async (t) => {
    const { client, deliver } = await setUp()
    deliver(4)
    deliver(4)
    deliver(3)
    deliver(5)

    t.match(client.received(), [{ push: { pub: { offset: 4 } } }, { push: { pub: { offset: 5 } } }])
  })

  t.test('a position check that finds the same loss twice ends the subscription', async (t) => {
    const { client, moveTop, advance } = await setUp()
    moveTop(4)
    await advance(1)
    await advance(40_000)
    t.same(client.received(), [], 'a single difference may be a publication in transit')
    await advance(40_000)

    t.match(client.received(), LOST)
  })

  t.test('a difference after a position check without one does not end the subscription', async (t) => {
    const { client, moveTop, advance } = await setUp()
    await advance(1)
    await advance(40_000)
    moveTop(4)
    await advance(40_000)

    t.same(client.received(), [])
  })

  t.test('a client can subscribe to a new stream while the node has delivered the old one', async (t) => {
    const { connected, deliver, moveTop } = await setUp()
    deliver(4)
    moveTop(2, 'new')
    const later = await connected('43')
    const received = await later.send({ id: 2, subscribe: { channel: 'floor:7' } })

    t.match(received, [{ subscribe: { epoch: 'new', offset: 2 } }])
    // A subscription that ends follows its reply at once. `match` accepts further messages.
    t.equal(received.length, 1)
  })

  t.test('a position check after an engine outage ends the subscription at the first loss', async (t) => {
    const { client, moveTop, advance, delivery } = await setUp()
    delivery.mayHaveMissed('floor:7')
    delivery.mayHaveMissed('floor:8')
    await advance(1)
    t.same(client.received(), [], 'nothing was missed')
    moveTop(4)
    await advance(1)
    t.same(client.received(), [], 'the position is compared once')
    delivery.mayHaveMissed('floor:7')
    await advance(1)

    t.match(client.received(), LOST)
  })

  t.test('a loss during a position check is found by the next check, without the usual delay', async (t) => {
    const resolvers: ((offset: number) => void)[] = []
    let isSlow = false
    const { connected, delivery, advance } = coreRelay(undefined, {
      history: {
        read: async () =>
          isSlow
            ? new Promise((resolve) =>
                resolvers.push((offset) => resolve({ epoch: 'e', offset, publications: [], oldest: 0 }))
              )
            : { epoch: 'e', offset: 3, publications: [], oldest: 0 },
        remove: async () => undefined
      }
    })
    const client = await connected('42')
    await client.send({ id: 2, subscribe: { channel: 'floor:7' } })
    client.received()
    isSlow = true
    const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
    delivery.mayHaveMissed('floor:7')
    await advance(1)
    // The stream was read before the connection was lost a second time.
    delivery.mayHaveMissed('floor:7')
    resolvers.shift()?.(3)
    await settled()
    t.same(client.received(), [])
    await advance(1)
    resolvers.shift()?.(4)
    await settled()

    t.match(client.received(), LOST)
  })

  t.test('a position check is not started again while the engine has not answered', async (t) => {
    const resolvers: (() => void)[] = []
    let isSlow = false
    const { connected, delivery, advance } = coreRelay(undefined, {
      history: {
        read: async () => {
          const end = { epoch: 'e', offset: 3, publications: [], oldest: 0 }
          return isSlow ? new Promise((resolve) => resolvers.push(() => resolve(end))) : end
        },
        remove: async () => undefined
      }
    })
    const client = await connected('42')
    await client.send({ id: 2, subscribe: { channel: 'floor:7' } })
    isSlow = true
    delivery.mayHaveMissed('floor:7')
    for (let ticks = 0; ticks < 5; ticks++) await advance(1)
    t.equal(resolvers.length, 1)

    resolvers[0]?.()
    await new Promise((resolve) => setImmediate(resolve))
    delivery.mayHaveMissed('floor:7')
    await advance(1)
    t.equal(resolvers.length, 2)
  })

  t.test('a stream that lost delivered publications ends the subscription at the first position check', async (t) => {
    const { client, deliver, moveTop, advance } = await setUp()
    deliver(4)
    client.received()
    moveTop(2)
    await advance(1)
    await advance(40_000)

    t.match(client.received(), LOST)
  })

  t.test('a gap that is skipped while a client subscribes ends its subscription too', async (t) => {
    const later: (() => void)[] = []
    let top = 3
    const { connected, delivery, advance } = coreRelay(undefined, {
      history: {
        read: async () => ({ epoch: 'e', offset: top, publications: [], oldest: 0 }),
        remove: async () => undefined
      },
      delayPushAfterReply: (task) => void later.push(task)
    })
    const [first, second] = [await connected('1'), await connected('2')]
    await first.send({ id: 2, subscribe: { channel: 'floor:7' } })
    for (const task of later.splice(0)) task()
    await second.send({ id: 2, subscribe: { channel: 'floor:7' } })
    delivery.mayHaveMissed('floor:7')
    top = 4
    await advance(1)
    t.match(first.received(), LOST)
    delivery.publication('floor:7', publicationAt(4), 'e')
    const secondGoesLive = later.splice(0)
    await first.send({ id: 3, subscribe: { channel: 'floor:7' } })
    for (const task of [...later, ...secondGoesLive]) task()
    t.match(second.received(), LOST)

    delivery.publication('floor:7', publicationAt(5), 'e')
    t.match(first.received(), [{ push: { pub: { offset: 5 } } }])
    t.same(second.received(), [])
  })

  t.test('a position check is repeated if the engine fails', async (t) => {
    let isAway = false
    let reads = 0
    const lines: string[] = []
    const log = (_facts: object, message: string): void => void lines.push(message)
    const relay = coreRelay(undefined, {
      log: { info: log, warn: log, error: log },
      history: {
        read: async () => {
          reads++
          if (isAway) throw new EngineError('away')
          return { epoch: 'e', offset: 3, publications: [], oldest: 0 }
        },
        remove: async () => undefined
      }
    })
    const client = await relay.connected('42')
    await client.send({ id: 2, subscribe: { channel: 'floor:7' } })
    isAway = true
    relay.delivery.mayHaveMissed('floor:7')
    await relay.advance(1)
    t.match(await client.send({ id: 3, subscribe: { channel: 'floor:8' } }), [
      { id: 3, error: { code: 100, temporary: true } }
    ])
    isAway = false
    reads = 0
    await relay.advance(1)
    await relay.advance(1)
    t.equal(reads, 1, 'the check is repeated once the engine is back, and only once')
    t.same(lines, [], 'the engine tells its outages itself')
  })

  t.test('a gap on a server-side subscription closes the connection', async (t) => {
    const relay = coreRelay(undefined, {
      history: {
        read: async () => ({ epoch: 'e', offset: 3, publications: [], oldest: 0 }),
        remove: async () => undefined
      }
    })
    const client = await relay.connected('42', { channels: ['floor:7'] })
    relay.delivery.publication(
      'floor:7',
      { data: '1', offset: 9, info: null, tags: null, time: 0, delta: false, version: 0 },
      'e'
    )

    t.equal(client.closed, '3010 insufficient state')
  })

  for (const [title, options, subscribe] of [
    ['force_positioning', { force_positioning: true }, {}],
    ['allow_positioning and a request', { allow_positioning: true }, { positioned: true }]
  ] as const) {
    t.test(
      `with ${title}, a client without a history has an epoch, and starts again after a possible gap`,
      async (t) => {
        const namespaces = [
          { name: 'chat', allow_subscribe_for_client: true, allowed_delta_types: ['fossil'], ...options }
        ]
        const { connected, publish, delivery, advance } = coreRelay({ client: NO_PINGS, channel: { namespaces } })
        const client = await connected('42')
        const request = { channel: 'chat:1', delta: 'fossil', recover: true, epoch: 'old', offset: 3, ...subscribe }
        t.match(await client.send({ id: 2, subscribe: request }), [
          {
            subscribe: {
              positioned: true,
              epoch: 'epoch1',
              offset: undefined,
              recoverable: undefined,
              delta: undefined
            }
          }
        ])
        for (const data of [1, 2]) publish('chat:1', data)
        t.match(client.received(), [{ push: { pub: { data: 1, offset: undefined } } }, { push: { pub: { data: 2 } } }])
        await advance(1)
        await advance(40_000)
        t.same(client.received(), [])
        delivery.mayHaveMissed('chat:1')
        await advance(1)
        t.match(client.received(), [{ push: { channel: 'chat:1', unsubscribe: { code: 2500 } } }])
      }
    )
  }

  t.test('a client without a position continues after a possible gap without a history', async (t) => {
    const { connected, delivery, advance } = coreRelay({
      client: NO_PINGS,
      channel: { namespaces: [{ name: 'chat', allow_subscribe_for_client: true, allow_positioning: true }] }
    })
    const client = await connected('42')
    await client.send({ id: 2, subscribe: { channel: 'chat:1' } })
    delivery.mayHaveMissed('chat:1')
    await advance(1)
    t.same(client.received(), [])
  })

  t.test('a gap before the first client with a position does not end its subscription', async (t) => {
    let offset = 3
    const { connected, delivery, advance } = coreRelay(
      {
        client: NO_PINGS,
        channel: { namespaces: [{ name: 'floor', ...WITH_HISTORY, force_recovery: false, allow_positioning: true }] }
      },
      {
        history: {
          read: async () => ({ epoch: 'e', offset, publications: [], oldest: 0 }),
          remove: async () => undefined
        }
      }
    )
    const [plain, positioned] = [await connected('1'), await connected('2')]
    await plain.send({ id: 2, subscribe: { channel: 'floor:7' } })
    // Makes 3 the delivered offset of the channel.
    await positioned.send({ id: 2, subscribe: { channel: 'floor:7', positioned: true } })
    await positioned.send({ id: 3, unsubscribe: { channel: 'floor:7' } })
    delivery.mayHaveMissed('floor:7')
    offset = 9
    await advance(1)

    await positioned.send({ id: 4, subscribe: { channel: 'floor:7', positioned: true } })
    await advance(1)
    t.same(positioned.received(), [])
    delivery.publication('floor:7', publicationAt(10), 'e')
    t.match(positioned.received(), [{ push: { pub: { offset: 10 } } }])
  })

  t.test('a gap while a client with a position subscribes is checked when it is subscribed', async (t) => {
    let offset = 3
    const later: (() => void)[] = []
    const { connected, delivery, advance, endTurn } = coreRelay(undefined, {
      history: {
        read: async () => ({ epoch: 'e', offset, publications: [], oldest: 0 }),
        remove: async () => undefined
      },
      delayPushAfterReply: (task) => void later.push(task)
    })
    const client = await connected('42')
    await client.send({ id: 2, subscribe: { channel: 'floor:7' } })
    delivery.mayHaveMissed('floor:7')
    offset = 4
    await advance(1)
    t.same(client.received(), [])
    for (const task of later.splice(0)) task()
    endTurn()
    await advance(1)

    t.match(client.received(), LOST)
  })

  t.test('positions are not checked after a reload that removes the history', async (t) => {
    let reads = 0
    const { connected, delivery, advance, relay } = coreRelay(undefined, {
      history: {
        read: async () => {
          reads++
          return { epoch: 'e', offset: 3, publications: [], oldest: 0 }
        },
        remove: async () => undefined
      }
    })
    const client = await connected('42')
    await client.send({ id: 2, subscribe: { channel: 'floor:7' } })
    relay.configure(configOf({ channel: { history_meta_ttl: '0s', namespaces: [{ name: 'floor' }] } }))
    reads = 0
    delivery.mayHaveMissed('floor:7')
    await advance(40_000)

    t.equal(reads, 0)
    t.equal(client.closed, null)
  })
})
