import t from 'tap'
import { EngineError } from '../../../../src/relay/core/engine.js'
import {
  CHANNEL,
  EPHEMERAL,
  loadMap,
  MapModel,
  type MapRelay,
  mapRelay,
  RECOVERABLE,
  rejectedMap,
  SMALL_PAGES,
  subscribeMap
} from '../../../helper/map-relay.js'
import { type Message, settled } from '../../../helper/relay-core.js'
import type { SubscribeResult } from '../../../helper/server-message.js'

const EPOCH = 'epoch1'

/** A relay whose map has these entries, at the offsets 1, 2, … */
const relayWith = (keys: readonly string[], map: Message = RECOVERABLE, client: Message = {}): MapRelay => {
  const relay = mapRelay(map, {}, client)
  for (const key of keys) relay.write(key, 0)
  return relay
}

/** What a client sends with its next request. */
const positionOf = ({ epoch, offset }: SubscribeResult) => ({ epoch, offset })

const FIVE = ['a', 'b', 'c', 'd', 'e']

t.test('the type of a subscription must be that of the namespace', async (t) => {
  const client = await relayWith(FIVE).connected('42')
  const codes = [
    await rejectedMap(client, { type: 0, phase: 2 }),
    await rejectedMap(client, { type: 2, phase: 2 }),
    await rejectedMap(client, { type: 3, phase: 2 }),
    await rejectedMap(client, { type: 9, phase: 2 }),
    await rejectedMap(client, { type: 4, phase: 2 }),
    await rejectedMap(client, { type: 1, phase: 2 }, 'chat:1')
  ]
  t.same(codes, [103, 103, 103, 103, 108, 103])
})

t.test('a channel of the type map_clients is subscribed with its own type, and its replies have type 1', async (t) => {
  const relay = mapRelay(RECOVERABLE, { subscription_type: 'map_clients' })
  const client = await relay.connected('42')
  t.equal(await rejectedMap(client, { type: 1, phase: 2 }), 103)
  t.match(await subscribeMap(client, { type: 2, phase: 2 }), { type: 1, recoverable: true })
})

t.test('a client that is live is already subscribed', async (t) => {
  const client = await relayWith(['a']).connected('42')
  await subscribeMap(client, { phase: 2 })
  t.equal(await rejectedMap(client, { phase: 2 }), 105)
  t.equal(await rejectedMap(client, { phase: 1, recover: true, epoch: EPOCH, offset: 1 }), 105)
})

t.test('a first page while the client is loading is rejected, and the client can go on', async (t) => {
  const client = await relayWith(FIVE).connected('42')
  const { cursor, offset, epoch } = await subscribeMap(client, { phase: 2 })
  t.equal(await rejectedMap(client, { phase: 2 }), 105)
  t.match(await subscribeMap(client, { phase: 2, cursor, offset, epoch }), { phase: 2, cursor: 'd' })
})

for (const [title, fields, code] of [
  ['a later page', { phase: 2, cursor: 'b', epoch: EPOCH, offset: 5 }, 103],
  ['the stream', { phase: 1, epoch: EPOCH, offset: 5 }, 103],
  ['a later page of live deliveries', { phase: 0, cursor: 'b', epoch: EPOCH, offset: 5 }, 103],
  ['live deliveries', { phase: 0 }, 112],
  ['live deliveries after an offset', { offset: 5 }, 112],
  ['live deliveries after a position of another epoch', { epoch: 'other', offset: 5 }, 112],
  ['an unknown phase', { phase: 3 }, 107],
  ['a negative phase', { phase: -1 }, 107]
] as const) {
  t.test(`a client that is not loading is rejected with ${code} if it requests ${title}`, async (t) => {
    const client = await relayWith(FIVE).connected('42')
    t.equal(await rejectedMap(client, fields), code)
  })
}

t.test('a client that is not loading gets the changes after its position without a recovery', async (t) => {
  const client = await relayWith(FIVE).connected('42')
  t.same(await subscribeMap(client, { epoch: EPOCH, offset: 4 }), {
    type: 1,
    recoverable: true,
    epoch: EPOCH,
    offset: 5,
    publications: [{ key: 'e', data: 0, offset: 5 }]
  })
})

t.test('malformed fields of a page close the connection', async (t) => {
  for (const fields of [{ phase: '2' }, { phase: 2, cursor: 7 }, { phase: 2, limit: 1.5 }, { phase: 2, offset: -1 }]) {
    const client = await relayWith(FIVE).connected('42')
    t.equal(await rejectedMap(client, fields), '3501 bad request')
  }
})

t.test('an ephemeral map has no stream, and nothing to recover', async (t) => {
  const client = await relayWith(FIVE, EPHEMERAL).connected('42')
  t.equal(await rejectedMap(client, { phase: 1, recover: true, epoch: EPOCH, offset: 1 }), 107)
  t.equal(await rejectedMap(client, { phase: 0, recover: true, epoch: EPOCH, offset: 1 }), 112)
  t.equal(await rejectedMap(client, { phase: 2, epoch: EPOCH, offset: 1 }), 112)
  const { cursor } = await subscribeMap(client, { phase: 2 })
  t.equal(await rejectedMap(client, { phase: 0 }), 107)
  t.equal(await rejectedMap(client, { phase: 2, cursor }), 103, 'the reservation has ended')
})

t.test('the size of pages is the default for 0 and less, raised to the minimum and cut to the maximum', async (t) => {
  const relay = relayWith([...'abcdefghij'], {
    ...RECOVERABLE,
    min_page_size: 2,
    default_page_size: 3,
    max_page_size: 4
  })
  const sizes: unknown[] = []
  for (const limit of [undefined, 0, -5, 1, 2, 4, 1000]) {
    const client = await relay.connected('42')
    const { state } = await subscribeMap(client, { phase: 2, limit })
    sizes.push((state as readonly unknown[]).length)
  }
  t.same(sizes, [3, 3, 3, 2, 2, 4, 4])
})

t.test('a page has at most 1 MiB, however large queue_max_size is', async (t) => {
  const large = { max_page_size: 1000, default_page_size: 1000, stream_size: 1000 }
  const relay = relayWith([], { ...RECOVERABLE, ...large }, { queue_max_size: 100_000_000 })
  for (let index = 10; index < 40; index++) relay.write(`k${index}`, 'x'.repeat(100_000))
  const client = await relay.connected('42')
  const page = await subscribeMap(client, { phase: 2 })
  t.match(page, { phase: 2, cursor: 'k19', state: { length: 10 } })
  const changes = await subscribeMap(client, { phase: 1, epoch: EPOCH, offset: 3 })
  t.match(changes, { phase: 1, offset: 13, publications: { length: 10 } })
  await client.send({ id: 3, unsubscribe: { channel: CHANNEL } })
  t.equal(await rejectedMap(client, { recover: true, epoch: EPOCH, offset: 3 }), 112)
  const last = await subscribeMap(client, { recover: true, epoch: EPOCH, offset: 25 })
  t.match(last, { recovered: true, offset: 30, publications: { length: 5 } })
})

t.test('pages are cut to queue_max_size, and an entry above it is sent alone', async (t) => {
  const relay = relayWith([], { ...RECOVERABLE, max_page_size: 100, default_page_size: 100 }, { queue_max_size: 6000 })
  for (const [index, key] of FIVE.entries()) relay.write(key, 'x'.repeat(index === 2 ? 9000 : 1500))
  const client = await relay.connected('42')
  const model = new MapModel()
  const pages: unknown[] = []
  await loadMap(client, model, ({ cursor, state }) => pages.push([cursor, (state as readonly unknown[]).length]))
  t.same(pages, [
    ['b', 2],
    ['c', 1]
  ])
  t.same(model.entries, await relay.entries())
  t.equal(client.closed, null)
})

t.test('pages follow each other, whatever cursor the client sends', async (t) => {
  const relay = relayWith(FIVE)
  const client = await relay.connected('42')
  const first = await subscribeMap(client, { phase: 2 })
  relay.remove('a')
  // A page of an attempt that the client has given up, with an earlier position.
  const second = await subscribeMap(client, { phase: 2, cursor: 'x'.repeat(5000), ...positionOf(first) })
  t.match(second, { phase: 2, cursor: 'd', state: [{ key: 'c' }, { key: 'd' }] })
  const last = await subscribeMap(client, { phase: 2, cursor: 'a', epoch: first.epoch, offset: 4 })
  t.match(last, {
    state: [{ key: 'e' }],
    publications: [
      { key: 'e', offset: 5 },
      { key: 'a', removed: true, offset: 6 }
    ]
  })
})

t.test('the cursor is a key and not a number: entries that are added or removed do not shift pages', async (t) => {
  const relay = relayWith(FIVE)
  const client = await relay.connected('42')
  const model = new MapModel()
  let isFirst = true
  await loadMap(client, model, () => {
    if (isFirst) {
      relay.remove('a')
      relay.write('aa', 1)
      relay.write('bb', 1)
    }
    isFirst = false
  })
  t.same(model.entries, await relay.entries())
})

t.test('a client that has fallen behind by more than a page catches up in pages of the stream', async (t) => {
  const relay = relayWith(FIVE)
  const client = await relay.connected('42')
  const model = new MapModel()
  const phases: unknown[] = []
  const last = await loadMap(client, model, ({ phase, cursor, offset, state, publications }) => {
    const entries = (state ?? publications) as readonly { readonly key: string }[] | undefined
    phases.push([phase, cursor, offset, entries?.map(({ key }) => key)])
    if (phases.length === 1) for (let round = 1; round <= 5; round++) relay.write(`n${round}`, round)
  })
  t.same(phases, [
    [2, 'b', 5, ['a', 'b']],
    [2, 'd', 5, ['c', 'd']],
    // The new entries fill the rest of the state, but come from the stream.
    [2, 'n1', 5, ['e']],
    [2, 'n3', 5, undefined],
    [2, undefined, 5, undefined],
    [1, undefined, 7, ['n1', 'n2']],
    [1, undefined, 9, ['n3', 'n4']]
  ])
  t.match(last, { type: 1, offset: 10, publications: [{ offset: 10 }] })
  t.same(model.entries, await relay.entries())
})

t.test('a stream page answers with the offset of its last publication, not with the end of the stream', async (t) => {
  const relay = relayWith(['a', 'b', 'c'])
  const client = await relay.connected('42')
  const { cursor, ...first } = await subscribeMap(client, { phase: 2 })
  for (let round = 1; round < 7; round++) relay.write('a', round)
  t.match(await subscribeMap(client, { phase: 2, cursor, ...positionOf(first) }), { phase: 2, offset: 3 })
  t.same(await subscribeMap(client, { phase: 1, ...positionOf(first) }), {
    type: 1,
    phase: 1,
    epoch: EPOCH,
    offset: 5,
    publications: [
      { key: 'a', data: 1, offset: 4 },
      { key: 'a', data: 2, offset: 5 }
    ]
  })
  relay.write('a', 7)
  // Only the end that the first request found matters, so that a busy map cannot keep a client from becoming live.
  t.match(await subscribeMap(client, { phase: 1, epoch: EPOCH, offset: 7 }), {
    phase: undefined,
    was_recovering: undefined,
    offset: 10,
    publications: [{ offset: 8 }, { offset: 9 }, { offset: 10 }]
  })
})

t.test('a recovery has all changes in one reply, also if they are more than a page', async (t) => {
  const relay = relayWith([])
  for (let round = 0; round < 5; round++) relay.write('a', round)
  const client = await relay.connected('42')
  t.match(await subscribeMap(client, { phase: 1, limit: 1, recover: true, epoch: EPOCH, offset: 1 }), {
    phase: undefined,
    recovered: true,
    offset: 5,
    publications: { length: 4 }
  })
})

t.test('a client does not recover if its changes are larger than queue_max_size', async (t) => {
  const relay = relayWith(['a'], RECOVERABLE, { queue_max_size: 6000 })
  for (let round = 0; round < 4; round++) relay.write('a', 'x'.repeat(2000))
  const client = await relay.connected('42')
  t.equal(await rejectedMap(client, { phase: 1, recover: true, epoch: EPOCH, offset: 1 }), 112)
  t.match(await subscribeMap(client, { phase: 2 }), { recoverable: true, offset: 5 }, 'it can start from scratch')
})

t.test('a client recovers in one request, with phase 1 and without a phase', async (t) => {
  for (const phase of [1, 0, undefined]) {
    const relay = relayWith(['a', 'b'])
    const client = await relay.connected('42')
    t.same(await subscribeMap(client, { phase, recover: true, epoch: EPOCH, offset: 1 }), {
      type: 1,
      recoverable: true,
      epoch: EPOCH,
      offset: 2,
      recovered: true,
      was_recovering: true,
      publications: [{ key: 'b', data: 0, offset: 2 }]
    })
    relay.write('c', 1)
    t.match(client.received(), [{ push: { pub: { key: 'c', offset: 3 } } }])
  }
})

t.test('a client that has missed nothing recovers without publications', async (t) => {
  const client = await relayWith(['a']).connected('42')
  t.same(await subscribeMap(client, { phase: 1, recover: true, epoch: EPOCH, offset: 1 }), {
    type: 1,
    recoverable: true,
    epoch: EPOCH,
    offset: 1,
    recovered: true,
    was_recovering: true
  })
})

for (const [title, position] of [
  ['of another epoch', { epoch: 'other', offset: 1 }],
  ['without an epoch', { offset: 1 }],
  ['beyond the end of the stream', { epoch: EPOCH, offset: 99 }],
  ['before the oldest change in the stream', { epoch: EPOCH, offset: 2 }],
  ['at the beginning of a stream that has lost its beginning', { epoch: EPOCH, offset: 0 }]
] as const) {
  for (const phase of [0, 1]) {
    t.test(`a client does not recover from a position ${title}, in phase ${phase}`, async (t) => {
      const relay = relayWith([], { ...RECOVERABLE, ...SMALL_PAGES, max_page_size: 50, stream_size: 3 })
      for (let round = 0; round < 8; round++) relay.write('a', round)
      const client = await relay.connected('42')
      t.equal(await rejectedMap(client, { phase, recover: true, limit: 50, ...position }), 112)
      t.match(await subscribeMap(client, { phase: 2 }), { recoverable: true, offset: 8 }, 'it can start from scratch')
    })
  }
}

t.test('a client does not recover from a stream whose changes have expired', async (t) => {
  const relay = relayWith(['a', 'b'], { ...RECOVERABLE, stream_ttl: '10s' })
  await relay.advance(11_000)
  const client = await relay.connected('42')
  t.equal(await rejectedMap(client, { phase: 1, recover: true, epoch: EPOCH, offset: 1 }), 112)
  const other = await relay.connected('42')
  t.match(await subscribeMap(other, { phase: 1, recover: true, epoch: EPOCH, offset: 2 }), { recovered: true })
})

t.test('exactly the live limit is caught up, and one change more is not', async (t) => {
  const map = { ...RECOVERABLE, default_page_size: 50, max_page_size: 50, live_transition_max_publication_limit: 4 }
  for (const [changes, isLive] of [
    [4, true],
    [5, false]
  ] as const) {
    const relay = relayWith(['a'], map)
    for (let round = 0; round < changes; round++) relay.write('a', round)
    const client = await relay.connected('42')
    const request = { phase: 1, recover: true, epoch: EPOCH, offset: 1 }
    if (isLive) t.match(await subscribeMap(client, request), { recovered: true, publications: { length: changes } })
    else t.equal(await rejectedMap(client, request), 112)
  }
})

t.test('a client that needs longer than the catch-up timeout is closed as slow', async (t) => {
  const relay = relayWith(FIVE, { ...RECOVERABLE, subscribe_catch_up_timeout: '2s' })
  const client = await relay.connected('42')
  await subscribeMap(client, { phase: 2 })
  await relay.advance(1900)
  t.equal(client.closed, null)
  await relay.advance(200)
  t.equal(client.closed, '3008 slow')
})

t.test('the catch-up timeout ends with live delivery, and a negative one never does', async (t) => {
  const live = relayWith(['a'])
  const client = await live.connected('42')
  await subscribeMap(client, { phase: 2 })
  await live.advance(60_000)
  t.equal(client.closed, null)

  const relay = relayWith(FIVE, { ...RECOVERABLE, subscribe_catch_up_timeout: '-1s' })
  const slow = await relay.connected('42')
  await subscribeMap(slow, { phase: 2 })
  await relay.advance(3_600_000)
  t.equal(slow.closed, null)
})

t.test('a map that was cleared while a client loads it is unrecoverable', async (t) => {
  const relay = relayWith(FIVE)
  const client = await relay.connected('42')
  const { cursor, epoch, offset } = await subscribeMap(client, { phase: 2 })
  await relay.clear()
  for (const key of FIVE) relay.write(key, 1)
  t.equal(await rejectedMap(client, { phase: 2, cursor, epoch, offset }), 112)
  t.match(await subscribeMap(client, { phase: 2 }), { epoch: 'epoch2', offset: 5 })
})

t.test('a client that was cut off while loading and returns to another epoch starts from scratch', async (t) => {
  const relay = relayWith(FIVE)
  const client = await relay.connected('42')
  // The official client sends the position of the first page that it received before it was cut off.
  t.equal(await rejectedMap(client, { phase: 2, epoch: 'other', offset: 3 }), 112)
  t.match(await subscribeMap(client, { phase: 2, epoch: EPOCH, offset: 3 }), { offset: 5 })
})

t.test('the reservation counts for channel_limit', async (t) => {
  const relay = relayWith(FIVE, RECOVERABLE, { channel_limit: 1 })
  const client = await relay.connected('42')
  await subscribeMap(client, { phase: 2 })
  t.match(await client.send({ id: 3, subscribe: { channel: 'chat:1' } }), [{ error: { code: 106 } }])
  t.match(await client.send({ id: 4, unsubscribe: { channel: CHANNEL } }), [{ id: 4, unsubscribe: {} }])
  t.match(await client.send({ id: 5, subscribe: { channel: 'chat:1' } }), [{ id: 5, subscribe: {} }])
})

for (const map of [RECOVERABLE, EPHEMERAL]) {
  t.test(`a client can unsubscribe from a map with the mode ${map.mode} while it loads`, async (t) => {
    const relay = relayWith(FIVE, map)
    const client = await relay.connected('42')
    const { cursor, epoch, offset } = await subscribeMap(client, { phase: 2 })
    t.same(await client.send({ id: 3, unsubscribe: { channel: CHANNEL } }), [{ id: 3, unsubscribe: {} }])
    t.equal(relay.relay.openChannels.size, 0)
    t.equal(await rejectedMap(client, { phase: 2, cursor, epoch, offset }), 103)
    t.match(await subscribeMap(client, { phase: 2 }), { phase: 2 })
  })

  t.test(`closing a client that loads a map with the mode ${map.mode} frees everything`, async (t) => {
    const relay = relayWith(FIVE, map)
    const client = await relay.connected('42')
    await subscribeMap(client, { phase: 2 })
    t.equal(relay.relay.openChannels.size, map === EPHEMERAL ? 1 : 0)
    client.client.connectionLost()
    t.equal(relay.relay.openChannels.size, 0)
    relay.write('a', 1)
    t.same(client.received(), [])
  })

  t.test(`the API unsubscribes a client that loads a map with the mode ${map.mode}`, async (t) => {
    const relay = relayWith(FIVE, map)
    const client = await relay.connected('42')
    const { cursor, epoch, offset } = await subscribeMap(client, { phase: 2 })
    await relay.relay.unsubscribeUser({ target: { user: '42', client: '', session: '' }, channel: CHANNEL })
    t.equal(await rejectedMap(client, { phase: 2, cursor, epoch, offset }), 103)
    t.equal(relay.relay.openChannels.size, 0)
  })
}

for (const [title, more] of [
  ['asks for changes', { phase: 1 }],
  ['recovers', { recover: true }]
] as const) {
  t.test(`the API unsubscribes or disconnects a client that ${title}, at each read of the engine`, async (t) => {
    const target = { user: '42', client: '', session: '' }
    for (const command of ['unsubscribe', 'disconnect'] as const) {
      for (let read = 1; read <= 2; read++) {
        const relay = relayWith(FIVE)
        const { maps } = relay.engine
        const client = await relay.connected('42')
        const { epoch, offset } = await subscribeMap(client, { phase: 2 })
        if (title === 'recovers') await client.send({ id: 9, unsubscribe: { channel: CHANNEL } })
        const readStream = maps.readStream.bind(maps)
        let reads = 0
        maps.readStream = async (...args) => {
          reads += 1
          if (reads === read && command === 'unsubscribe')
            await relay.relay.unsubscribeUser({ target, channel: CHANNEL })
          else if (reads === read)
            await relay.relay.disconnectUser({ target, whitelist: [], code: 4000, reason: 'gone' })
          return readStream(...args)
        }
        const received = await client.send({ id: 5, subscribe: { channel: CHANNEL, type: 1, epoch, offset, ...more } })
        if (reads < read) continue
        if (command === 'unsubscribe') t.match(received, [{ id: 5, error: { code: 103 } }], `read ${read}`)
        else t.equal(client.closed, '4000 gone', `read ${read}`)
        t.equal(relay.relay.openChannels.size, 0)
        t.equal(relay.relay.stats().subscriptions, 0)
      }
    }
  })
}

t.test('a page of changes without one in the middle is answered with 112', async (t) => {
  const relay = relayWith(FIVE, { ...RECOVERABLE, live_transition_max_publication_limit: 1 })
  const { maps } = relay.engine
  const client = await relay.connected('42')
  const { epoch, offset = 0 } = await subscribeMap(client, { phase: 2, limit: 4 })
  for (let change = 0; change < 9; change++) relay.write('a', change)
  const readStream = maps.readStream.bind(maps)
  maps.readStream = async (...args) => {
    const page = await readStream(...args)
    return { ...page, publications: page.publications.filter((publication) => publication.offset !== offset + 2) }
  }

  t.equal(await rejectedMap(client, { phase: 1, limit: 4, epoch, offset }), 112)
})

t.test('a client closed by an error of its last page leaves nothing behind', async (t) => {
  const relay = relayWith(FIVE, { ...RECOVERABLE, live_transition_max_publication_limit: 1, max_page_size: 50 })
  const client = await relay.connected('42')
  const { epoch, offset } = await subscribeMap(client, { phase: 2 })
  relay.write('a', 1)
  relay.write('a', 2)
  t.equal(await rejectedMap(client, { phase: 2, cursor: 'b', limit: 50, epoch, offset }), 112)
  t.equal(relay.relay.openChannels.size, 0)
  t.match(await subscribeMap(client, { phase: 2, limit: 50 }), { offset: 7, state: { length: 5 } })
})

t.test('a client of an ephemeral map starts again if more changes arrive than fit into its queue', async (t) => {
  const relay = relayWith(FIVE, EPHEMERAL, { queue_max_size: 4000 })
  const client = await relay.connected('42')
  const { cursor } = await subscribeMap(client, { phase: 2 })
  for (let round = 0; round < 100; round++) relay.write('a', 'x'.repeat(1000))
  const second = await subscribeMap(client, { phase: 2, cursor })
  t.match(second, { cursor: 'd' }, 'only the newest change of a key is kept')
  for (let round = 0; round < 100; round++) relay.write(`n${round}`, 'x'.repeat(1000))
  t.equal(await rejectedMap(client, { phase: 2, cursor: second.cursor }), 112)
  t.equal(client.closed, null)
  t.equal(relay.relay.openChannels.size, 0)
})

t.test(
  'changes that do not fit beside the last page of an ephemeral map come with an empty page after it',
  async (t) => {
    const relay = relayWith([], { ...EPHEMERAL, default_page_size: 3 }, { queue_max_size: 6000 })
    for (const key of FIVE) relay.write(key, 'x'.repeat(1000))
    const client = await relay.connected('42')
    const model = new MapModel()
    const pages: unknown[] = []
    await loadMap(client, model, ({ cursor }) => {
      pages.push(cursor)
      if (pages.length === 1) for (const key of ['a', 'b', 'c', 'd']) relay.write(key, 'y'.repeat(1000))
    })
    t.same(pages, ['c', 'e'])
    t.same(model.entries, await relay.entries())
  }
)

t.test('changes that do not fit beside the last page of a map come from its stream', async (t) => {
  const relay = relayWith([], { ...RECOVERABLE, default_page_size: 3, max_page_size: 10 }, { queue_max_size: 6000 })
  for (const key of FIVE) relay.write(key, 'x'.repeat(1000))
  const client = await relay.connected('42')
  const model = new MapModel()
  const pages: unknown[] = []
  const last = await loadMap(
    client,
    model,
    ({ phase, cursor }) => {
      pages.push([phase, cursor])
      if (pages.length === 1)
        for (const key of ['a', 'b', 'c']) for (let i = 0; i < 2; i++) relay.write(key, 'y'.repeat(1000))
    },
    { limit: 10 }
  )
  t.same(pages, [
    [2, 'd'],
    [2, undefined],
    [1, undefined]
  ])
  t.match(last, { phase: undefined, offset: 11 })
  t.same(model.entries, await relay.entries())
})

t.test('a page that the engine cannot read is error 100, and the client starts again', async (t) => {
  for (const map of [RECOVERABLE, EPHEMERAL]) {
    const relay = relayWith(FIVE, map)
    const client = await relay.connected('42')
    const { cursor, epoch, offset } = await subscribeMap(client, { phase: 2 })
    const { readState } = relay.engine.maps
    relay.engine.maps.readState = () => Promise.reject(new EngineError('down'))
    t.equal(await rejectedMap(client, { phase: 2, cursor, epoch, offset }), 100)
    t.equal(relay.relay.openChannels.size, 0)
    relay.engine.maps.readState = readState
    t.match(await subscribeMap(client, { phase: 2 }), { phase: 2, cursor: 'b' })
  }
})

t.test('a client of an ephemeral map cannot load while the engine does not deliver', async (t) => {
  const relay = relayWith(FIVE, EPHEMERAL)
  const client = await relay.connected('42')
  const { cursor } = await subscribeMap(client, { phase: 2 })
  relay.engine.isDelivering = () => false
  t.equal(await rejectedMap(client, { phase: 2, cursor }), 100)
  t.equal(await rejectedMap(client, { phase: 2 }), 100)
  t.equal(relay.relay.openChannels.size, 0)
})

t.test('a client that is closed while the engine reads leaves nothing behind', async (t) => {
  for (const [map, method] of [
    [RECOVERABLE, 'readState'],
    [RECOVERABLE, 'readStream'],
    [EPHEMERAL, 'readState']
  ] as const) {
    const relay = relayWith(['a'], map)
    const { maps } = relay.engine
    const read = maps[method].bind(maps) as (...args: never[]) => Promise<never>
    let finish = (): void => undefined
    maps[method] = async (...args: unknown[]) => {
      await new Promise<void>((resolve) => {
        finish = resolve
      })
      return read(...(args as never[]))
    }
    const client = await relay.connected('42')
    t.same(await client.send({ id: 2, subscribe: { channel: CHANNEL, type: 1, phase: 2 } }), [])
    client.client.connectionLost()
    finish()
    await settled()
    t.equal(relay.relay.openChannels.size, 0)
    t.same(client.received(), [])
  }
})

t.test('changes that do not fit into the reply beside the last entries follow in the next one', async (t) => {
  const relay = mapRelay(RECOVERABLE, {}, { queue_max_size: 20_000 })
  for (const key of ['a', 'b']) relay.write(key, 0)
  relay.write('c', 'x'.repeat(12_000))
  const client = await relay.connected('42')
  const { cursor, offset, epoch } = await subscribeMap(client, { phase: 2 })
  relay.write('a', 'y'.repeat(9000))
  const last = await subscribeMap(client, { phase: 2, cursor, offset, epoch })

  t.match(last, { phase: 2, cursor: undefined, state: [{ key: 'c' }], publications: undefined })
  t.match(await subscribeMap(client, { phase: 1, offset, epoch }), { phase: undefined, publications: [{ key: 'a' }] })
})

t.test('changes of a map that began again are not pages of the earlier one', async (t) => {
  const relay = relayWith(FIVE)
  const client = await relay.connected('42')
  const { epoch } = await subscribeMap(client, { phase: 2 })
  await relay.clear()
  for (const key of FIVE) relay.write(key, 'new')

  t.equal(await rejectedMap(client, { phase: 1, epoch, offset: 0, limit: 1 }), 112)
})
