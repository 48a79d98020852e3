import fc from 'fast-check'
import t from 'tap'
import {
  CHANNEL,
  EPHEMERAL,
  loadMap,
  MapModel,
  type MapRelay,
  mapRelay,
  RECOVERABLE,
  rejectedMap,
  subscribeMap
} from '../../../helper/map-relay.js'
import { checkProperty } from '../../../helper/property.js'
import { type FakeClient, type Message, publicationAt } from '../../../helper/relay-core.js'

const VIEWS = { view_x: 'x', view_y: 'at.y', view_cell: 10 }
const PERSISTENT = { mode: 'persistent', default_page_size: 2, min_page_size: 1, max_page_size: 4 }

const viewRelay = (map: Message = RECOVERABLE, more: Message = {}): MapRelay => mapRelay(map, { ...VIEWS, ...more })

const at = (x: number, n = 0): Message => ({ x, at: { y: 5 }, n })

/** Granted from 0 to 20, and 0 to 10. */
const VIEW = { view: { x: 1, y: 1, w: 11, h: 1 } }
const GRANTED = { view: { x: 0, y: 0, w: 20, h: 10 } }

const publications = (client: FakeClient) => client.received().flatMap(({ push }) => push?.pub ?? [])

for (const map of [RECOVERABLE, EPHEMERAL, PERSISTENT]) {
  t.test(
    `a client of a map with the mode ${map.mode} loads the entries in its view, and has no position`,
    async (t) => {
      const relay = viewRelay(map)
      for (let index = 0; index < 9; index++) relay.write(`k${index}`, at(5 * index))
      relay.write('note', { text: 1 })
      const client = await relay.connected('42')
      const first = await subscribeMap(client, { phase: 2, limit: 2, data: VIEW })
      t.same(first, {
        type: 1,
        phase: 2,
        cursor: 'k1',
        state: [
          { key: 'k0', data: at(0) },
          { key: 'k1', data: at(5) }
        ]
      })
      const second = await subscribeMap(client, { phase: 2, limit: 2, cursor: 'k1', data: VIEW })
      t.match(second, { phase: 2, state: [{ key: 'k2' }, { key: 'k3' }], epoch: undefined, offset: undefined })
      const last = await subscribeMap(client, { phase: 2, limit: 2, cursor: second.cursor, data: VIEW })
      t.same(last, { type: 1, state: [{ key: 'note', data: { text: 1 } }], data: GRANTED })
    }
  )

  t.test(`changes in a view of a map with the mode ${map.mode} are pushed, and leaving is a removal`, async (t) => {
    const relay = viewRelay(map)
    relay.write('in', at(5))
    relay.write('out', at(25))
    const client = await relay.connected('42')
    await loadMap(client, new MapModel(), undefined, { data: VIEW })
    relay.write('in', at(6))
    relay.write('out', at(26))
    relay.write('new', at(99))
    t.same(publications(client), [{ key: 'in', data: at(6) }])
    relay.write('in', at(20))
    relay.write('out', at(19))
    t.same(publications(client), [
      { key: 'in', removed: true },
      { key: 'out', data: at(19) }
    ])
    relay.write('in', at(21))
    relay.remove('in')
    relay.write('out', { noPlace: true })
    relay.remove('out')
    t.same(publications(client), [
      { key: 'out', data: { noPlace: true } },
      { key: 'out', removed: true }
    ])
  })
}

t.test('an entry without coordinates is in every view, until it gets some elsewhere', async (t) => {
  const relay = viewRelay()
  const client = await relay.connected('42')
  await loadMap(client, new MapModel(), undefined, { data: VIEW })
  relay.write('a', { x: 5 })
  relay.write('a', { x: 99, at: { y: '5' } })
  relay.write('a', at(99))
  relay.write('a', at(98))

  t.same(publications(client), [
    { key: 'a', data: { x: 5 } },
    { key: 'a', data: { x: 99, at: { y: '5' } } },
    { key: 'a', removed: true }
  ])
})

t.test('a removal without the entry that it removes goes to every view', async (t) => {
  const relay = viewRelay()
  const client = await relay.connected('42')
  await loadMap(client, new MapModel(), undefined, { data: VIEW })
  relay.delivery.publication(CHANNEL, { ...publicationAt(1), key: 'a', removed: true }, 'epoch1')

  t.match(publications(client), [{ key: 'a', removed: true }])
})

t.test('a change between the reads for one page of a view is pushed when it is delivered later', async (t) => {
  const relay = viewRelay()
  relay.write('a', at(5))
  for (let index = 0; index < 8; index++) relay.write(`k${index}`, at(99))
  const { maps } = relay.engine
  const readState = maps.readState.bind(maps)
  let reads = 0
  maps.readState = async (...args) => {
    const page = await readState(...args)
    reads += 1
    return reads === 1 ? page : { ...page, offset: page.offset + 1 }
  }
  const client = await relay.connected('42')
  t.match(await subscribeMap(client, { phase: 2, data: VIEW }), { phase: undefined, state: [{ key: 'a' }] })
  t.ok(reads > 1, `${reads} reads`)
  const change = { ...publicationAt(10), key: 'a', data: JSON.stringify(at(6)) }
  relay.delivery.publication(CHANNEL, change, 'epoch1')

  t.same(publications(client), [{ key: 'a', data: at(6) }])
})

t.test('changes between the pages of a view are in the last reply', async (t) => {
  const relay = viewRelay()
  for (const key of ['a', 'b', 'c', 'd']) relay.write(key, at(5))
  const client = await relay.connected('42')
  const first = await subscribeMap(client, { phase: 2, limit: 2, data: VIEW })
  relay.write('a', at(50))
  relay.write('b', at(6))
  relay.write('0', at(7))
  relay.remove('c')
  relay.write('outside', at(70))
  const last = await subscribeMap(client, { phase: 2, limit: 2, cursor: first.cursor, data: VIEW })

  t.match(last, { phase: undefined, state: [{ key: 'd' }] })
  t.same(last.publications, [
    { key: 'a', removed: true },
    { key: 'b', data: at(6) },
    { key: '0', data: at(7) },
    { key: 'c', removed: true }
  ])
})

t.test('a map with a view cannot be recovered, and has no stream phase', async (t) => {
  const relay = viewRelay()
  relay.write('a', at(5))
  const client = await relay.connected('42')
  const position = { recover: true, epoch: 'epoch1', offset: 1 }
  t.equal(await rejectedMap(client, { phase: 0, ...position, data: VIEW }), 112)
  t.equal(await rejectedMap(client, { phase: 1, ...position, data: VIEW }), 112)
  for (let index = 0; index < 9; index++) relay.write(`k${index}`, at(5))
  await subscribeMap(client, { phase: 2, limit: 1, data: VIEW })
  t.equal(await rejectedMap(client, { phase: 1, epoch: 'epoch1', offset: 1, data: VIEW }), 107)
  await subscribeMap(client, { phase: 2, limit: 1, data: VIEW })
  t.equal(client.closed, null, 'and the channel is free again')
})

t.test('a view of a map is rejected with error 107 if it is invalid or combined with a tag filter', async (t) => {
  const relay = viewRelay(RECOVERABLE, { allow_tags_filter: true })
  const client = await relay.connected('42')
  for (const view of [null, 7, { x: 0, y: 0, w: 0, h: 1 }, { x: 1e300, y: 0, w: 1, h: 1 }])
    t.equal(await rejectedMap(client, { phase: 2, data: { view } }), 107)
  const tf = { key: 'a', cmp: 'eq', val: 'b' }
  t.equal(await rejectedMap(client, { phase: 2, data: VIEW, tf }), 107)
})

t.test('a client of a map that asks for too many cells receives everything without a position', async (t) => {
  const relay = viewRelay()
  relay.write('a', at(99_999))
  const client = await relay.connected('42')
  const reply = await subscribeMap(client, { phase: 2, data: { view: { x: 0, y: 0, w: 1e6, h: 1 } } })
  relay.write('a', at(-99_999))

  t.same(reply, { type: 1, state: [{ key: 'a', data: at(99_999) }] })
  t.same(publications(client), [{ key: 'a', data: at(-99_999) }])
})

t.test('a delta is not granted together with a view of a map', async (t) => {
  const relay = viewRelay(RECOVERABLE, { allowed_delta_types: ['fossil'] })
  relay.write('a', at(5))
  const client = await relay.connected('42')
  const reply = await subscribeMap(client, { phase: 2, delta: 'fossil', data: VIEW })
  relay.write('a', at(6))

  t.match(reply, { delta: undefined, state: [{ data: at(5) }] })
  t.same(publications(client), [{ key: 'a', data: at(6) }])
})

t.test('an entry of a map that expires is removed in the views that have it', async (t) => {
  const relay = viewRelay({ ...RECOVERABLE, key_ttl: '10s' })
  relay.write('in', at(5))
  relay.write('out', at(55))
  const client = await relay.connected('42')
  await loadMap(client, new MapModel(), undefined, { data: VIEW })
  await relay.advance(11_000)
  await relay.engine.maps.expire()

  t.same(publications(client), [{ key: 'in', removed: true }])
})

t.test('after a gap a client with a view of a map starts again', async (t) => {
  const relay = viewRelay()
  relay.write('a', at(5))
  const client = await relay.connected('42')
  await loadMap(client, new MapModel(), undefined, { data: VIEW })
  relay.delivery.publication(CHANNEL, { ...publicationAt(9), key: 'a' }, 'epoch1')

  t.match(client.received(), [{ push: { unsubscribe: { code: 2500 } } }])
})

t.test('a small view of a large map needs few pages', async (t) => {
  const relay = viewRelay({ ...RECOVERABLE, max_page_size: 1000 })
  for (let index = 0; index < 10_000; index++) relay.write(`k${index}`, at(index))
  const client = await relay.connected('42')
  const model = new MapModel()
  let pages = 0
  await loadMap(client, model, () => ++pages, { data: VIEW, limit: 100 })

  t.equal(model.state.size, 20)
  t.ok(pages <= 1, `${pages} pages`)
})

t.test('equal views of a map share their bytes', async (t) => {
  const relay = viewRelay()
  const clients = [await relay.connected('1'), await relay.connected('2')]
  for (const client of clients) await loadMap(client, new MapModel(), undefined, { data: VIEW })
  relay.write('a', at(5))
  relay.write('a', at(55))
  const [one, other] = clients.map((client) => {
    client.received()
    return client.sink.frames.slice(-1)
  })

  t.equal(one?.[0], other?.[0])
})

type Step =
  | { readonly kind: 'write'; readonly key: number; readonly x: number | null }
  | { readonly kind: 'remove'; readonly key: number }
  | { readonly kind: 'page' | 'move'; readonly client: number; readonly x: number; readonly w: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('write' as const),
      key: fc.integer({ min: 0, max: 9 }),
      x: fc.option(fc.integer({ min: -20, max: 49 }), { freq: 6 })
    })
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('remove' as const), key: fc.integer({ min: 0, max: 9 }) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom('page' as const, 'page' as const, 'move' as const),
      client: fc.integer({ min: 0, max: 2 }),
      x: fc.integer({ min: -15, max: 40 }),
      w: fc.constantFrom(1, 7, 20, 1e6)
    })
  }
)

/** A client that loads a view page by page, and applies what it receives as the official client does. */
class Loader {
  readonly #client: FakeClient
  #model = new MapModel()
  #data: Message = { view: { x: 0, y: 0, w: 10, h: 10 } }
  #cursor: unknown = ''
  isLive = false
  granted: { readonly x: number; readonly w: number } | null = null

  constructor(client: FakeClient) {
    this.#client = client
  }

  async move(x: number, w: number): Promise<void> {
    await this.#client.send({ id: 3, unsubscribe: { channel: CHANNEL } })
    this.#data = { view: { x, y: 0, w, h: 10 } }
    this.#model = new MapModel()
    this.#cursor = ''
    this.isLive = false
  }

  async page(): Promise<void> {
    if (this.isLive) return
    const request = { channel: CHANNEL, type: 1, phase: 2, limit: 1, cursor: this.#cursor, data: this.#data }
    const messages = await this.#client.send({ id: 2, subscribe: request })
    for (const { subscribe } of messages) {
      if (subscribe === undefined) continue
      this.#model.result(subscribe)
      this.#cursor = subscribe.cursor
      this.isLive = subscribe.phase === undefined
      this.granted = (subscribe.data as { view?: { x: number; w: number } } | undefined)?.view ?? null
    }
    this.#model.pushes(messages)
  }

  receive(): Readonly<Record<string, unknown>> {
    this.#model.pushes(this.#client.received())
    return this.#model.entries
  }
}

for (const map of [RECOVERABLE, EPHEMERAL]) {
  t.test(`random views of a map with the mode ${map.mode} have what the map has there`, async (t) => {
    await checkProperty(
      t,
      fc.asyncProperty(fc.array(step, { maxLength: 40, size: 'max' }), async (steps) => {
        const relay = viewRelay(map)
        const clients = await Promise.all(['1', '2', '3'].map(async (user) => new Loader(await relay.connected(user))))
        let n = 0
        for (const each of steps) {
          if (each.kind === 'write') relay.write(`k${each.key}`, each.x === null ? { n: ++n } : at(each.x, ++n))
          else if (each.kind === 'remove') relay.remove(`k${each.key}`)
          else if (each.kind === 'page') await clients[each.client]?.page()
          else await clients[each.client]?.move(each.x, each.w)
          for (const client of clients) client.receive()
        }
        const entries = Object.entries(await relay.entries()).sort()
        for (const client of clients) {
          while (!client.isLive) await client.page()
          const { granted } = client
          const expected = entries.filter(([, data]) => {
            const { x } = data as { x?: number }
            return granted === null || x === undefined || (x >= granted.x && x < granted.x + granted.w)
          })
          const shown = JSON.stringify(client.receive())
          if (shown !== JSON.stringify(Object.fromEntries(expected)))
            throw new Error(`${shown} instead of ${JSON.stringify(expected)}`)
        }
      }),
      { numRuns: 150 }
    )
  })
}
