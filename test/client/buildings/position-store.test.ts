import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import type { PositionEntry } from '../../../schemas/realtime.js'
import { type LivePosition, PositionStore } from '../../../src/client/buildings/position-store.js'
import { FakeClock } from '../../helper/fake-clock.js'
import { checkProperty } from '../../helper/property.js'

const entry = (transmitterId: string | number, x: number, more: Partial<PositionEntry> = {}): PositionEntry => ({
  transmitterId,
  position: { x, y: 0 },
  positionMethod: 'nearest',
  floorId: 'f-1',
  ...more
})

const setUp = (maxAgeMs = 1000) => {
  const clock = new FakeClock()
  const store = new PositionStore({ nowMs: () => clock.now(), maxAgeMs })
  let changes = 0
  store.onChange(() => {
    changes += 1
  })
  const removed: LivePosition[] = []
  store.onRemoved((last) => void removed.push(last))
  return {
    clock,
    store,
    removed,
    x: (id: string | number) => store.get(id)?.entry.position.x,
    get changes() {
      return changes
    }
  }
}

t.test('the store of positions', async (t) => {
  t.test('the store has the newest position of every transmitter', async (t) => {
    const { store, x } = setUp()
    store.add([entry('a', 1), entry('b', 2)])
    store.add([entry('a', 3)])

    t.same([x('a'), x('b'), store.positions.size], [3, 2, 2])
  })

  t.test('the store treats a numeric id and its text as the same transmitter', async (t) => {
    const { store, x } = setUp()
    store.add([entry(7, 1)])
    store.add([entry('7', 2)])

    t.same([x(7), store.positions.size], [2, 1])
  })

  const orders: readonly (readonly [title: string, first: unknown, second: unknown, newest: number])[] = [
    ['later', 1000, 2000, 2],
    ['earlier', 2000, 1000, 1],
    ['at the same time', 1000, 1000, 2],
    ['later, as texts', '2025-11-15T10:00:00Z', '2025-11-15T10:00:01Z', 2],
    ['earlier, as texts of different zones', '2025-11-15T10:00:00Z', '2025-11-15T10:30:00+01:00', 1],
    ['earlier, as a text after a number', 1763200000000, '2024-01-01T00:00:00Z', 1],
    ['without a timestamp', 2000, undefined, 2],
    ['with a null timestamp', 2000, null, 2],
    ['with an invalid timestamp', 2000, 'yesterday', 2],
    ['with a number as a text', 2000, '1000', 2],
    ['with a list as a timestamp', 2000, [1000], 2],
    ['after one without a timestamp', undefined, 1000, 2]
  ]
  for (const [title, first, second, newest] of orders) {
    t.test(
      `the store keeps the ${newest === 2 ? 'second' : 'first'} of two entries if the second is ${title}`,
      async (t) => {
        const { store, x } = setUp()
        // Values that the type does not allow are part of the table.
        store.add([entry('a', 1, { timestamp: first } as Partial<PositionEntry>)])
        const late = entry('a', 2, { timestamp: second } as Partial<PositionEntry>) // as above
        t.same(store.add([late]), newest === 2 ? [late] : [], 'the added entries are returned')
        t.equal(x('a'), newest)
      }
    )
  }

  t.test('the newest of several entries of a transmitter in one batch is stored', async (t) => {
    const { store, x } = setUp()
    store.add([2, 3, 3, 1].map((timestamp, index) => entry('a', index, { timestamp })))

    t.equal(x('a'), 2)
  })

  t.test('a position has the age of its timestamp, or of its arrival without one', async (t) => {
    const { store, clock } = setUp()
    const nowMs = clock.now()
    store.add([
      entry('old', 1, { timestamp: nowMs - 5000 }),
      entry('text', 1, { timestamp: new Date(nowMs - 7000).toISOString() }),
      entry('future', 1, { timestamp: nowMs + 60_000 }),
      entry('none', 1)
    ])
    clock.advance(300)

    t.same(
      ['old', 'text', 'future', 'none', 'other'].map((id) => store.ageMs(id)),
      [5300, 7300, 300, 300, undefined]
    )
  })

  t.test('the store reports a removed transmitter with its last position', async (t) => {
    const { store, clock, removed } = setUp()
    const last = entry('a', 2, { timestamp: clock.now() - 500 })
    store.add([entry('a', 1), entry('b', 1, { floorId: 'f-2' }), last])
    const [receivedAtMs, atMs] = [clock.now(), clock.now() - 500]
    store.forgetFloor('f-2')
    clock.advance(1000)
    store.sweep()
    t.same(removed, [{ entry: last, receivedAtMs, atMs }])
    store.add([entry('c', 1)])
    store.clear()

    t.equal(removed.length, 1, 'what the page itself removes is not reported')
  })

  t.test('the store keeps an old position until it has had no update for maxAgeMs', async (t) => {
    const { store, clock } = setUp()
    store.add([entry('a', 1, { timestamp: clock.now() - 600_000 })])
    clock.advance(999)
    store.sweep()

    t.equal(store.ageMs('a'), 600_999)
  })

  t.test('the store removes a transmitter without a recent update', async (t) => {
    const { store, clock } = setUp()
    store.add([entry('a', 1), entry('b', 1)])
    clock.advance(999)
    store.add([entry('b', 2)])
    store.sweep()
    t.equal(store.positions.size, 2)
    clock.advance(1)
    store.sweep()

    t.same([...store.positions.keys()], ['b'])
  })

  t.test('a timestamp in the far future expires like any other', async (t) => {
    const { store, clock, x } = setUp()
    store.add([entry('a', 1, { timestamp: 9e15 })])
    store.add([entry('a', 2, { timestamp: 1000 })])
    t.equal(x('a'), 1)
    clock.advance(1000)
    store.sweep()
    store.add([entry('a', 3, { timestamp: 2000 })])

    t.equal(x('a'), 3)
  })

  t.test('the store lists and clears the positions of a floor', async (t) => {
    const { store } = setUp()
    store.add([entry('a', 1), entry('b', 1, { floorId: 2 })])
    store.add([entry('c', 1, { floorId: '2' })])
    t.same(
      store.onFloor(2).map(({ entry }) => entry.transmitterId),
      ['b', 'c']
    )
    // A transmitter that changed floors is on the new floor only.
    store.add([entry('c', 2, { floorId: 'f-1' })])
    store.forgetFloor('2')

    t.same([...store.positions.keys()], ['a', 'c'])
    store.clear()
    t.equal(store.positions.size, 0)
  })

  t.test('the store notifies its listeners of changes only', async (t) => {
    const context = setUp()
    const { store, clock } = context
    store.add([])
    store.sweep()
    store.clear()
    t.equal(context.changes, 0)

    store.add([entry('a', 1, { timestamp: 2000 }), entry('b', 1)])
    t.equal(context.changes, 1)
    store.add([entry('a', 1, { timestamp: 1000 })])
    t.equal(context.changes, 1)
    clock.advance(1000)
    store.sweep()
    t.equal(context.changes, 2)
  })

  t.test(
    'the store holds exactly the newest recent entry of each transmitter, and reports every removal',
    async (t) => {
      const steps = fc.array(
        fc.record({ id: fc.nat(3), timestamp: fc.option(fc.nat(20)), waitMs: fc.nat(600), sweeps: fc.boolean() }),
        { maxLength: 40 }
      )
      await checkProperty(
        t,
        fc.property(steps, (list) => {
          const { store, clock, removed } = setUp()
          const model = new Map<string, { timestamp: number | null; atMs: number }>()
          const gone: string[] = []
          for (const { id, timestamp, waitMs, sweeps } of list) {
            clock.advance(waitMs)
            if (sweeps) {
              store.sweep()
              for (const [key, { atMs }] of model) {
                if (clock.now() - atMs < 1000) continue
                model.delete(key)
                gone.push(key)
              }
            }
            const added = store.add([entry(id, 0, { timestamp })])
            const known = model.get(String(id))
            const isNewer = timestamp === null || known === undefined || timestamp >= (known.timestamp ?? 0)
            assert.equal(added.length, isNewer ? 1 : 0)
            if (isNewer) model.set(String(id), { timestamp, atMs: clock.now() })
          }
          assert.deepEqual(
            [...store.positions]
              .map(([key, { entry, receivedAtMs }]) => [key, entry.timestamp, receivedAtMs])
              .toSorted(),
            [...model].map(([key, { timestamp, atMs }]) => [key, timestamp, atMs]).toSorted()
          )
          assert.deepEqual(
            removed.map(({ entry }) => String(entry.transmitterId)),
            gone
          )
          for (const [key, { timestamp, atMs }] of model)
            assert.equal(store.ageMs(key), clock.now() - (timestamp ?? atMs), 'the age is by the timestamp')
        }),
        { numRuns: 500 }
      )
    }
  )
})
