import t from 'tap'
import { CHANNEL, EPHEMERAL, loadMap, MapModel, mapRelay, subscribeMap } from '../../../helper/map-relay.js'

t.test('a client receives the entries of a map in pages, and is live with the last page', async (t) => {
  const relay = mapRelay()
  for (const key of ['a', 'b', 'c']) relay.write(key, { at: key })
  const client = await relay.connected('42')

  t.same(await subscribeMap(client, { phase: 2 }), {
    type: 1,
    phase: 2,
    epoch: 'epoch1',
    offset: 3,
    cursor: 'b',
    state: [
      { key: 'a', data: { at: 'a' }, offset: 1 },
      { key: 'b', data: { at: 'b' }, offset: 2 }
    ]
  })
  t.same(await subscribeMap(client, { phase: 2, cursor: 'b', epoch: 'epoch1', offset: 3 }), {
    type: 1,
    recoverable: true,
    epoch: 'epoch1',
    offset: 3,
    state: [{ key: 'c', data: { at: 'c' }, offset: 3 }]
  })
  relay.write('d', 1)
  relay.remove('a')
  t.same(client.received(), [
    { push: { channel: CHANNEL, pub: { key: 'd', data: 1, offset: 4 } } },
    { push: { channel: CHANNEL, pub: { key: 'a', removed: true, offset: 5 } } }
  ])
})

t.test('changes of entries that were sent already come with the last page', async (t) => {
  const relay = mapRelay()
  for (const key of ['a', 'b', 'c', 'd']) relay.write(key, 1)
  const client = await relay.connected('42')
  await subscribeMap(client, { phase: 2 })
  relay.write('a', 2)
  relay.remove('c')

  t.same(await subscribeMap(client, { phase: 2, cursor: 'b', epoch: 'epoch1', offset: 4 }), {
    type: 1,
    recoverable: true,
    epoch: 'epoch1',
    offset: 6,
    state: [{ key: 'd', data: 1, offset: 4 }],
    publications: [
      { key: 'a', data: 2, offset: 5 },
      { key: 'c', removed: true, offset: 6 }
    ]
  })
})

t.test('a client of an ephemeral map receives the changes since its first page, and no position', async (t) => {
  const relay = mapRelay(EPHEMERAL)
  for (const key of ['a', 'b', 'c', 'd', 'e']) relay.write(key, 1)
  const client = await relay.connected('42')
  const model = new MapModel()
  const seen: unknown[] = []
  const last = await loadMap(client, model, (page) => {
    seen.push(page)
    relay.write('a', seen.length)
    relay.remove('b')
  })
  t.same(seen[0], {
    type: 1,
    phase: 2,
    cursor: 'b',
    state: [
      { key: 'a', data: 1 },
      { key: 'b', data: 1 }
    ]
  })
  t.same(last, {
    type: 1,
    state: [{ key: 'e', data: 1 }],
    publications: [
      { key: 'b', removed: true },
      { key: 'a', data: 2 }
    ]
  })
  t.same(model.entries, await relay.entries())
  relay.write('f', 1)
  t.same(client.received(), [{ push: { channel: CHANNEL, pub: { key: 'f', data: 1 } } }])
})
