import t from 'tap'
import type { RetainedPage } from '../../../../src/relay/core/engine.js'
import { coreRelay, type Message, publicationAt, withNamespace } from '../../../helper/relay-core.js'

const CACHE = {
  allow_subscribe_for_client: true,
  history_size: 10,
  history_ttl: '60s',
  force_recovery: true,
  force_recovery_mode: 'cache'
}
const AUTO = { ...CACHE, auto_cache_recover: true }
const POSITION = { recoverable: true, positioned: true, epoch: 'epoch1' }

const setUp = (options: Message = CACHE, published = 5) => {
  const relay = coreRelay(withNamespace(options))
  for (let data = 1; data <= published; data++) relay.publish('chat:1', data)
  const subscribe = async (more: Message = {}) =>
    (await (await relay.connected('42')).send({ id: 2, subscribe: { channel: 'chat:1', ...more } }))[0]
  const recover = async (offset: number, epoch = 'epoch1', more: Message = {}) =>
    subscribe({ recover: true, offset, epoch, ...more })
  return { ...relay, subscribe, recover }
}

t.test('recovery from the cache', async (t) => {
  const newest = { publications: [{ data: 5, offset: 5 }], recovered: true, was_recovering: true }
  const handed: [title: string, offset: number, epoch: string, expected: Message, options: Message][] = [
    ['behind', 2, 'epoch1', { offset: 2 }, CACHE],
    ['that the history has dropped', 1, 'epoch1', { offset: 1 }, { ...CACHE, history_size: 1 }],
    ['of no epoch', 0, '', {}, CACHE],
    ['of another epoch', 5, 'other', {}, CACHE],
    ['that is ahead of the stream', 9, 'epoch1', {}, CACHE]
  ]
  for (const [title, offset, epoch, expected, options] of handed) {
    t.test(`cache recovery sends only the newest publication to a client at a position ${title}`, async (t) => {
      t.same(await setUp(options).recover(offset, epoch), { id: 2, subscribe: { ...POSITION, ...expected, ...newest } })
    })
  }

  t.test(
    'cache recovery sends nothing to a client that has the newest publication, even after the history has expired',
    async (t) => {
      const { recover, advance } = setUp()
      const nothing = { id: 2, subscribe: { ...POSITION, offset: 5, recovered: true, was_recovering: true } }

      t.same(await recover(5), nothing)
      await advance(60_000)
      t.same(await recover(5), nothing)
    }
  )

  t.test('cache recovery fails if the newest publication has expired', async (t) => {
    const { recover, advance } = setUp()
    await advance(60_000)

    t.same(await recover(3), { id: 2, subscribe: { ...POSITION, offset: 5, was_recovering: true } })
    t.match(await recover(3, 'epoch1', { flag: 3 }), { error: { code: 112 } })
  })

  t.test('cache recovery fails on a channel without publications', async (t) => {
    const { recover } = setUp(CACHE, 0)
    for (const epoch of ['', 'epoch1'])
      t.same(await recover(0, epoch), { id: 2, subscribe: { ...POSITION, was_recovering: true } })
  })

  t.test('cache recovery is only for clients that request it', async (t) => {
    t.same(await setUp().subscribe(), { id: 2, subscribe: { ...POSITION, offset: 5 } })
  })

  t.test('live publications follow a cache recovery', async (t) => {
    const { connected, publish } = setUp()
    const client = await connected('42')
    await client.send({ id: 2, subscribe: { channel: 'chat:1', recover: true, offset: 2, epoch: 'epoch1' } })
    publish('chat:1', 6)

    t.same(client.received(), [{ push: { channel: 'chat:1', pub: { data: 6, offset: 6 } } }])
  })
})

t.test('auto_cache_recover', async (t) => {
  t.test('auto_cache_recover sends the newest publication', async (t) => {
    t.same(await setUp(AUTO).subscribe(), {
      id: 2,
      subscribe: { ...POSITION, publications: [{ data: 5, offset: 5 }], recovered: true, was_recovering: true }
    })
  })

  t.test('auto_cache_recover sends nothing to a reconnecting client that has the newest publication', async (t) => {
    t.same(await setUp(AUTO).recover(5), {
      id: 2,
      subscribe: { ...POSITION, offset: 5, recovered: true, was_recovering: true }
    })
  })

  t.test('auto_cache_recover is not an error on a channel without publications', async (t) => {
    t.same(await setUp(AUTO, 0).subscribe({ flag: 3 }), { id: 2, subscribe: { ...POSITION, was_recovering: true } })
  })

  t.test('auto_cache_recover applies to the channels of a token', async (t) => {
    const { client, token } = setUp(AUTO)

    t.match(await client().send({ id: 1, connect: { token: token({ sub: '42', channels: ['chat:1'] }) } }), [
      { connect: { subs: { 'chat:1': { publications: [{ data: 5, offset: 5 }], recovered: true } } } }
    ])
  })
})

t.test('publications while the cache is read', async (t) => {
  const subscribed = async (options: Message, request: Message, early: readonly number[]) => {
    let give = (_page: RetainedPage): void => undefined
    const page = new Promise<RetainedPage>((resolve) => {
      give = resolve
    })
    const { connected, delivery } = coreRelay(withNamespace(options), {
      history: { read: () => page, remove: async () => undefined }
    })
    const client = await connected('42')
    await client.send({ id: 2, subscribe: { channel: 'chat:1', ...request } })
    for (const offset of early) delivery.publication('chat:1', publicationAt(offset), 'e')
    give({ epoch: 'e', offset: 5, publications: [publicationAt(5)], oldest: 5 })
    for (let turn = 0; turn < 10; turn++) await Promise.resolve()
    const received = client.received()
    delivery.publication('chat:1', publicationAt(8), 'e')
    return { received, later: client.received(), closed: client.closed }
  }

  t.test('a publication that arrives while the cache is read replaces the one that was read', async (t) => {
    const { received, later } = await subscribed(AUTO, {}, [5, 6, 7])

    t.match(received, [{ id: 2, subscribe: { publications: [{ data: 7, offset: 7 }], recovered: true } }])
    t.equal(received.length, 1)
    t.match(later, [{ push: { pub: { offset: 8 } } }])
  })

  t.test('publications that arrive while the cache is read follow one by one if the client uses deltas', async (t) => {
    const delta = { ...AUTO, allowed_delta_types: ['fossil'] }
    const { received } = await subscribed(delta, { delta: 'fossil' }, [6, 7])

    t.match(received, [
      { id: 2, subscribe: { publications: [{ data: '5', offset: 5 }], recovered: true, delta: true } },
      { push: { pub: { data: '6', offset: 6 } } },
      { push: { pub: { data: '7', offset: 7 } } }
    ])
  })

  t.test('a gap after the cache was read closes the connection', async (t) => {
    t.equal((await subscribed(AUTO, {}, [7])).closed, '3010 insufficient state')
  })
})
