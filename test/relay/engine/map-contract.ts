import t, { type Test } from 'tap'
import type {
  Broker,
  HistoryRange,
  MapChanged,
  MapRemoval,
  Maps,
  MapWrite,
  StateRange
} from '../../../src/relay/core/engine.js'
import type { MapOptions } from '../../../src/relay/core/options.js'
import { required } from '../../helper/required.js'
import { ALL, Delivered, optionsOf } from './contract.js'

export interface MapsUnderTest {
  readonly broker: Broker
  readonly maps: Maps
  /** Advances the time of the engine. */
  advance(ms: number): Promise<void> | void
}

const mapOptionsOf = (
  map: Readonly<Record<string, unknown>>,
  more: Readonly<Record<string, unknown>> = {}
): MapOptions => required(optionsOf({ subscription_type: 'map', map, ...more }).map)

export const RECOVERABLE = mapOptionsOf({
  mode: 'recoverable',
  key_ttl: '60s',
  stream_size: 5,
  stream_ttl: '30s',
  meta_ttl: '1h'
})
export const PERSISTENT = mapOptionsOf({ mode: 'persistent', stream_size: 5, stream_ttl: '30s' })
export const EPHEMERAL = mapOptionsOf({ mode: 'ephemeral', key_ttl: '60s' })
const WITH_PREVIOUS = mapOptionsOf(
  { mode: 'recoverable', key_ttl: '60s' },
  { allowed_delta_types: ['fossil'], allow_tags_filter: true }
)

export const PLAIN_WRITE: Omit<MapWrite, 'key' | 'data'> = {
  info: null,
  tags: null,
  delta: false,
  idempotencyKey: '',
  version: 0,
  versionEpoch: '',
  keyMode: null,
  renews: false
}

const ALL_ENTRIES: StateRange = { after: '', limit: -1 }
const CHANNEL = 'ns:1'

const changed = (result: MapChanged | 'full'): MapChanged => {
  if (result === 'full') throw new Error('the map is full')
  return result
}

/** The tests that the maps of every engine pass. */
export const mapContract = (name: string, create: (t: Test) => Promise<MapsUnderTest>): void => {
  t.test(`maps of ${name}`, async (t) => {
    const setUp = async (t: Test, options: MapOptions = RECOVERABLE) => {
      const engine = await create(t)
      const delivered = new Delivered()
      await engine.broker.start(delivered)
      await engine.broker.subscribe(CHANNEL)
      const { maps } = engine
      const tryWrite = async (key: string, data = '1', more: Partial<MapWrite> = {}, channel = CHANNEL) =>
        maps.write(channel, { ...PLAIN_WRITE, key, data, ...more }, options)
      const write = async (...args: Parameters<typeof tryWrite>) => changed(await tryWrite(...args))
      const remove = async (key: string, more: Partial<MapRemoval> = {}) =>
        maps.removeKey(CHANNEL, { key, idempotencyKey: '', ...more }, options)
      const state = (range: Partial<StateRange> = {}) => maps.readState(CHANNEL, { ...ALL_ENTRIES, ...range }, options)
      const entries = async () =>
        Object.fromEntries((await state()).entries.map(({ key, data }) => [key, data] as const))
      const stream = (range: Partial<HistoryRange> = {}) => maps.readStream(CHANNEL, { ...ALL, ...range }, options)
      return { ...engine, delivered, tryWrite, write, remove, state, entries, stream }
    }

    t.test('a write is stored, takes the next offset and is delivered', async (t) => {
      const { delivered, write, state, stream } = await setUp(t)
      const first = await write('a', '{"x":1}', { tags: '{"t":"v"}', info: '{"user":"u"}', delta: true })
      t.match(first, { offset: 1, epoch: /^.+$/, suppressedBy: null })
      t.match(await write('b', '2'), { offset: 2, epoch: first.epoch })
      await delivered.until(2)

      const a = { key: 'a', data: '{"x":1}', tags: '{"t":"v"}', info: '{"user":"u"}', delta: true, offset: 1 }
      t.match(delivered.publications, [
        [CHANNEL, a, first.epoch],
        [CHANNEL, { key: 'b', data: '2', offset: 2 }, first.epoch]
      ])
      t.match(await state(), {
        epoch: first.epoch,
        offset: 2,
        next: '',
        entries: [a, { key: 'b', data: '2', offset: 2 }]
      })
      t.match(await stream(), { epoch: first.epoch, offset: 2, oldest: 1, publications: [a, { key: 'b', offset: 2 }] })
    })

    t.test('a second write of a key replaces its entry', async (t) => {
      const { maps, write, state, stream } = await setUp(t)
      await write('a', '1')
      await write('a', '2')

      t.match(await state(), { offset: 2, entries: [{ key: 'a', data: '2', offset: 2 }] })
      t.equal(await maps.count(CHANNEL, RECOVERABLE), 1)
      t.match((await stream()).publications, [{ data: '1' }, { data: '2' }])
    })

    t.test('binary data is stored and delivered unchanged', async (t) => {
      const { maps, delivered, state } = await setUp(t)
      const everyByte = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
      await maps.write(CHANNEL, { ...PLAIN_WRITE, key: 'a', data: everyByte }, RECOVERABLE)
      await delivered.until(1)

      t.same((await state()).entries[0]?.data, everyByte)
      t.same(delivered.publications[0]?.[1].data, everyByte)
    })

    t.test('a removal is a change with the tags of the entry', async (t) => {
      const { delivered, write, remove, state, stream } = await setUp(t)
      await write('a', '1', { tags: '{"t":"v"}' })
      t.match(await remove('a'), { offset: 2, suppressedBy: null })
      await delivered.until(2)

      const removal = { key: 'a', removed: true, data: 'null', offset: 2, tags: '{"t":"v"}' }
      t.match(delivered.publications[1]?.[1], removal)
      t.match((await stream()).publications[1], removal)
      t.match(await state(), { offset: 2, entries: [] })
    })

    t.test('removing a missing key changes nothing', async (t) => {
      const { delivered, write, remove, state } = await setUp(t)
      const { epoch } = await write('a')
      t.same(await remove('b'), { epoch, offset: 1, suppressedBy: 'key_not_found' })
      await write('c')
      await delivered.until(2)

      t.match(
        delivered.publications.map(([, { key }]) => key),
        ['a', 'c']
      )
      t.match(await state(), { offset: 2 })
    })

    t.test('a written entry has no member of a removal, and no previous entry without need', async (t) => {
      const { delivered, write, state } = await setUp(t)
      await write('a')
      await write('a')
      await delivered.until(2)

      for (const publication of [delivered.publications[1]?.[1], (await state()).entries[0]]) {
        t.notOk(publication?.removed)
        t.notOk(publication?.previous)
      }
    })

    t.test('a change is delivered with the entry that it replaces, if that is needed', async (t) => {
      const { delivered, write, remove, state, stream } = await setUp(t, WITH_PREVIOUS)
      await write('a', '1', { tags: '{"t":"v"}' })
      await write('a', '2')
      await remove('a')
      await write('a', '3')
      await delivered.until(4)

      t.same(
        delivered.publications.map(([, { previous }]) => previous ?? null),
        [null, { data: '1', tags: '{"t":"v"}' }, { data: '2', tags: null }, null]
      )
      const stored = [...(await state()).entries, ...(await stream()).publications]
      t.ok(stored.every(({ previous }) => previous === undefined))
    })

    t.test('keys with a meaning in JavaScript or Redis are ordinary keys', async (t) => {
      const { write, remove, entries } = await setUp(t)
      const keys = [
        '__proto__',
        'constructor',
        'toString',
        '0',
        '-1',
        '+',
        '-',
        '[a',
        '(a',
        'é',
        '\u{1f600}',
        ' ',
        '\n'
      ]
      for (const [index, key] of keys.entries()) await write(key, String(index))
      t.same(Object.keys(await entries()).toSorted(), keys.toSorted())
      for (const key of keys) t.match(await remove(key), { suppressedBy: null }, key)

      t.same(await entries(), {})
    })

    t.test('state pages contain every key once, in one order', async (t) => {
      const { write, remove, state } = await setUp(t)
      const keys = Array.from({ length: 40 }, (_, index) => `k${(index * 7) % 40}`)
      for (const key of keys) await write(key)
      for (const key of keys.slice(0, 10)) await remove(key)
      const read: (string | undefined)[] = []
      let after = ''
      do {
        const page = await state({ after, limit: 7 })
        t.ok(page.entries.length <= 7)
        read.push(...page.entries.map(({ key }) => key))
        after = page.next
      } while (after !== '')

      t.same(read.toSorted(), keys.slice(10).toSorted())
    })

    t.test('the last page has no next one, also if it is full', async (t) => {
      const { write, state } = await setUp(t)
      for (const key of ['a', 'b', 'c', 'd']) await write(key)
      const first = await state({ limit: 2 })
      t.not(first.next, '')

      t.match(await state({ after: first.next, limit: 2 }), { next: '', entries: { length: 2 } })
    })

    t.test('a page starts after a key that was removed', async (t) => {
      const { write, remove, state } = await setUp(t)
      for (const key of ['a', 'b', 'c', 'd']) await write(key)
      const { next } = await state({ limit: 2 })
      await remove(next)

      t.equal((await state({ after: next, limit: 10 })).entries.length, 2)
      t.match(await state({ after: '\u{10ffff}' }), { entries: [], next: '' })
    })

    t.test('a read of no entries has the position only', async (t) => {
      const { write, state } = await setUp(t)
      const { epoch } = await write('a')

      t.same(await state({ limit: 0 }), { epoch, offset: 1, entries: [], next: '' })
    })

    t.test('a read assigns the epoch that writes continue', async (t) => {
      const { write, state, stream } = await setUp(t)
      const { epoch, offset } = await state()
      t.equal(offset, 0)
      t.not(epoch, '')
      t.match(await stream(), { epoch, offset: 0, oldest: 1, publications: [] })

      t.match(await write('a'), { epoch, offset: 1 })
    })

    t.test('one key is read alone', async (t) => {
      const { maps, write } = await setUp(t)
      await write('a', '7', { tags: '{"t":"v"}' })

      t.match(await maps.readKey(CHANNEL, 'a', RECOVERABLE), { key: 'a', data: '7', offset: 1, tags: '{"t":"v"}' })
      t.equal(await maps.readKey(CHANNEL, 'b', RECOVERABLE), null)
      t.equal(await maps.readKey('ns:other', 'a', RECOVERABLE), null)
    })

    t.test('the stream is limited to its size, and read from a position in both directions', async (t) => {
      const { write, stream } = await setUp(t)
      for (const key of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) await write(key)
      const { epoch, oldest, offset } = await stream({ limit: 0 })
      t.equal(offset, 8)
      t.ok(oldest > 1 && oldest <= 4, 'an engine may keep a few changes more')
      const offsets = async (range: Partial<HistoryRange>) =>
        (await stream(range)).publications.map((publication) => publication.offset)

      t.same(await offsets({ since: { epoch, offset: 5 } }), [6, 7, 8])
      t.same(await offsets({ since: { epoch, offset: 5 }, limit: 2 }), [6, 7])
      t.same(await offsets({ since: { epoch, offset: 7 }, reverse: true, limit: 2 }), [6, 5])
      t.same(await offsets({ reverse: true, limit: 2 }), [8, 7])
    })

    t.test('changes expire from the stream while the entries stay', async (t) => {
      const { write, state, stream, advance } = await setUp(t)
      await write('a')
      await advance(31_000)

      t.match(await stream(), { offset: 1, oldest: 2, publications: [] })
      t.match(await state(), { offset: 1, entries: [{ key: 'a' }] })
    })

    t.test('a repeated idempotency key returns the first position', async (t) => {
      const { delivered, write, remove, entries } = await setUp(t)
      const first = await write('a', '1', { idempotencyKey: 'once' })
      await write('a', '2')
      t.same(await write('a', '3', { idempotencyKey: 'once' }), { ...first, suppressedBy: 'idempotency' })
      t.same(await remove('a', { idempotencyKey: 'once' }), { ...first, suppressedBy: 'idempotency' })
      const removed = await remove('a', { idempotencyKey: 'gone' })
      t.equal(removed.offset, 3)
      t.same(await remove('a', { idempotencyKey: 'gone' }), { ...removed, suppressedBy: 'idempotency' })
      t.same(await entries(), {})
      t.match(await write('a', '1', { idempotencyKey: 'once' }, 'ns:other'), { suppressedBy: null })
      await delivered.until(3)
    })

    t.test('an idempotency key of a suppressed change can be used again', async (t) => {
      const { write, remove } = await setUp(t)
      await remove('a', { idempotencyKey: 'i' })
      await write('a', '1', { keyMode: 'if_exists', idempotencyKey: 'i' })

      t.match(await write('a', '1', { idempotencyKey: 'i' }), { offset: 1, suppressedBy: null })
    })

    t.test('an idempotency key is valid for five minutes', async (t) => {
      const { write, advance } = await setUp(t, PERSISTENT)
      await write('a', '1', { idempotencyKey: 'once' })
      await advance(301_000)

      t.match(await write('a', '2', { idempotencyKey: 'once' }), { offset: 2, suppressedBy: null })
    })

    t.test('a version that is not higher than the last one of the key is suppressed', async (t) => {
      const { write, remove, entries } = await setUp(t)
      await write('a', '1', { version: 5, versionEpoch: 'x' })
      for (const version of [4, 5])
        t.match(await write('a', '0', { version, versionEpoch: 'x' }), { offset: 1, suppressedBy: 'version' })
      t.match(await write('a', '0', { version: 5 }), { suppressedBy: 'version' }, 'without an epoch')
      t.match(await write('b', '2', { version: 1, versionEpoch: 'x' }), { suppressedBy: null }, 'another key')
      await write('a', '3')
      t.match(await write('a', '0', { version: 5, versionEpoch: 'x' }), { suppressedBy: 'version' }, 'still known')
      t.match(await write('a', '4', { version: 6, versionEpoch: 'x' }), { suppressedBy: null })
      t.match(await write('a', '5', { version: 1, versionEpoch: 'y' }), { suppressedBy: null }, 'another epoch')
      t.same(await entries(), { a: '5', b: '2' })
      await remove('a')

      t.match(await write('a', '6', { version: 1, versionEpoch: 'y' }), { suppressedBy: null }, 'forgotten by removal')
    })

    t.test('versions above 32 bits are compared exactly', async (t) => {
      const { write } = await setUp(t)
      const version = Number.MAX_SAFE_INTEGER - 1
      await write('a', '1', { version })
      t.match(await write('a', '2', { version }), { suppressedBy: 'version' })

      t.match(await write('a', '2', { version: version + 1 }), { suppressedBy: null })
    })

    t.test('a key mode lets only writes of new or only of existing keys through', async (t) => {
      const { write, entries } = await setUp(t)
      t.match(await write('a', '1', { keyMode: 'if_exists' }), { offset: 0, suppressedBy: 'key_not_found' })
      t.match(await write('a', '2', { keyMode: 'if_new' }), { offset: 1, suppressedBy: null })
      t.match(await write('a', '3', { keyMode: 'if_new' }), { offset: 1, suppressedBy: 'key_exists' })
      t.match(await write('a', '4', { keyMode: 'if_exists' }), { offset: 2, suppressedBy: null })

      t.same(await entries(), { a: '4' })
    })

    t.test('the conditions of a write are checked in order: idempotency key, version, key mode', async (t) => {
      const { write } = await setUp(t)
      const all = { idempotencyKey: 'once', version: 1, keyMode: 'if_new' } as const
      await write('a', '1', all)
      t.match(await write('a', '1', all), { suppressedBy: 'idempotency' })
      t.match(await write('a', '1', { ...all, idempotencyKey: '' }), { suppressedBy: 'version' })

      t.match(await write('a', '1', { ...all, idempotencyKey: '', version: 2 }), { suppressedBy: 'key_exists' })
    })

    t.test('a map with its maximum number of keys accepts no new key', async (t) => {
      const small = { ...RECOVERABLE, maxKeys: 2 }
      const { delivered, tryWrite, remove, state } = await setUp(t, small)
      await tryWrite('a')
      await tryWrite('b')
      t.equal(await tryWrite('c'), 'full')
      t.equal(await tryWrite('c', '1', { keyMode: 'if_new' }), 'full')
      t.match(await tryWrite('a', '2'), { offset: 3 }, 'an existing key can be written')
      await remove('b')
      t.match(await tryWrite('c'), { offset: 5 })
      await delivered.until(5)

      t.same(
        (await state()).entries.map(({ key }) => key),
        ['a', 'c']
      )
    })

    t.test('an expired key is removed once, with its tags', async (t) => {
      const { maps, delivered, write, advance, state, stream } = await setUp(t)
      const { epoch } = await write('a', '1', { tags: '{"t":"v"}' })
      await advance(40_000)
      await write('b', '2')
      t.match(await maps.expire(), { keys: 0 })
      await advance(25_000)
      t.same(
        (await state()).entries.map(({ key }) => key),
        ['a', 'b'],
        'shown until its removal was delivered'
      )
      const { keys, lagMs } = await maps.expire()
      t.equal(keys, 1)
      t.ok(lagMs >= 4_000 && lagMs < 60_000, String(lagMs))
      t.match(await maps.expire(), { keys: 0, lagMs: 0 })
      await delivered.until(3)

      t.match(delivered.publications.slice(2), [
        [CHANNEL, { key: 'a', removed: true, data: 'null', offset: 3, tags: '{"t":"v"}' }, epoch]
      ])
      t.match((await stream()).publications.at(-1), { key: 'a', removed: true, offset: 3 })
      t.match(await state(), { offset: 3, entries: [{ key: 'b' }] })
    })

    t.test('every write starts the TTL of a key again, and a suppressed one does not', async (t) => {
      const { maps, write, advance } = await setUp(t)
      await write('a', '1', { version: 2 })
      await write('b')
      await advance(40_000)
      await write('a', '2', { version: 1 })
      await write('a', '2', { keyMode: 'if_new' })
      await write('b')
      await advance(21_000)

      t.match(await maps.expire(), { keys: 1 })
      t.equal(await maps.readKey(CHANNEL, 'a', RECOVERABLE), null)
    })

    t.test('a renewal starts the TTL of an existing key again, without a change', async (t) => {
      const { maps, delivered, write, advance } = await setUp(t)
      const renewal = { keyMode: 'if_new', renews: true } as const
      await write('a', '1', renewal)
      await write('b', '1', renewal)
      await advance(40_000)
      t.match(await write('a', '2', renewal), { offset: 2, suppressedBy: 'key_exists' })
      await advance(21_000)
      t.match(await maps.expire(), { keys: 1 })
      await delivered.until(3)
      t.match(delivered.publications[2]?.[1], { key: 'b', removed: true })

      t.match(await maps.readKey(CHANNEL, 'a', RECOVERABLE), { data: '1' })
    })

    t.test('the version of an expired key is forgotten', async (t) => {
      const { maps, write, advance } = await setUp(t)
      await write('a', '1', { version: 5 })
      await advance(61_000)
      await maps.expire()

      t.match(await write('a', '1', { version: 1 }), { suppressedBy: null })
    })

    t.test('keys of many channels expire in one call', async (t) => {
      const { maps, write, advance } = await setUp(t)
      for (let channel = 0; channel < 30; channel++) await write('a', '1', {}, `ns:${channel}`)
      await advance(61_000)
      let expired = 0
      for (let calls = 0; calls < 30 && expired < 30; calls++) expired += (await maps.expire()).keys

      t.equal(expired, 30)
    })

    t.test('keys of a persistent map do not expire', async (t) => {
      const { maps, write, advance } = await setUp(t, PERSISTENT)
      const { epoch } = await write('a')
      await advance(365 * 24 * 3_600_000)
      t.match(await maps.expire(), { keys: 0 })

      t.match(await maps.readState(CHANNEL, ALL_ENTRIES, PERSISTENT), { epoch, offset: 1, entries: [{ key: 'a' }] })
    })

    t.test('an ephemeral map has entries and deliveries without positions', async (t) => {
      const { maps, delivered, write, remove, state, stream, advance } = await setUp(t, EPHEMERAL)
      const noPosition = { epoch: '', offset: 0 }
      t.same(await write('a', '1'), { ...noPosition, suppressedBy: null })
      t.same(await write('a', '2', { keyMode: 'if_new' }), { ...noPosition, suppressedBy: 'key_exists' })
      t.match(await state(), { ...noPosition, next: '', entries: [{ key: 'a', data: '1', offset: 0 }] })
      t.match(await stream(), { ...noPosition, publications: [] })
      await write('b', '1', { tags: '{"t":"v"}' })
      t.same(await remove('a'), { ...noPosition, suppressedBy: null })
      await advance(61_000)
      t.match(await maps.expire(), { keys: 1 })
      await delivered.until(4)

      t.match(delivered.publications, [
        [CHANNEL, { key: 'a', offset: 0 }, ''],
        [CHANNEL, { key: 'b', offset: 0 }, ''],
        [CHANNEL, { key: 'a', removed: true, offset: 0 }, ''],
        [CHANNEL, { key: 'b', removed: true, offset: 0, tags: '{"t":"v"}' }, '']
      ])
      t.equal(await maps.count(CHANNEL, EPHEMERAL), 0)
    })

    t.test('a cleared map is empty and begins a new epoch, without a delivery', async (t) => {
      const { maps, delivered, write, state, stream } = await setUp(t)
      const { epoch } = await write('a', '1', { version: 5 })
      await maps.clear(CHANNEL, RECOVERABLE)
      t.equal(await maps.count(CHANNEL, RECOVERABLE), 0)
      t.equal(await maps.readKey(CHANNEL, 'a', RECOVERABLE), null)
      const second = await write('b', '1', { version: 1 })
      t.equal(second.offset, 1)
      t.not(second.epoch, epoch)
      t.match(await state(), { epoch: second.epoch, offset: 1, entries: [{ key: 'b' }] })
      t.match((await stream()).publications, [{ key: 'b' }])
      await delivered.until(2)

      t.match(delivered.publications[1], [CHANNEL, { key: 'b', offset: 1 }, second.epoch])
    })

    t.test('keys of a cleared map do not expire later', async (t) => {
      const { maps, delivered, write, advance } = await setUp(t)
      await write('a')
      await maps.clear(CHANNEL, RECOVERABLE)
      await advance(61_000)
      t.match(await maps.expire(), { keys: 0 })
      await write('b')
      await delivered.until(2)

      t.same(
        delivered.publications.map(([, { key }]) => key),
        ['a', 'b']
      )
    })

    t.test('maps of different channels share nothing', async (t) => {
      const { maps, write, state } = await setUp(t)
      await write('a')
      await write('b', '1', {}, 'ns:2')

      t.match(await state(), { offset: 1, entries: [{ key: 'a' }] })
      t.match(await maps.readState('ns:2', ALL_ENTRIES, RECOVERABLE), { offset: 1, entries: [{ key: 'b' }] })
    })

    t.test('entries, stream and epoch of an unused map vanish together', async (t) => {
      const { maps, broker, write, state, stream, advance } = await setUp(t)
      const { epoch } = await write('a', '1', { version: 9 })
      await broker.unsubscribe(CHANNEL)
      await advance(3_601_000)
      const later = await state()
      t.not(later.epoch, epoch)
      t.match(later, { offset: 0, entries: [] })
      t.match(await stream(), { epoch: later.epoch, offset: 0, publications: [] })
      t.match(await maps.expire(), { keys: 0 })

      t.match(await write('a', '1', { version: 1 }), { epoch: later.epoch, offset: 1 })
    })
  })
}
