import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import type { PositionEntry } from '../../../schemas/realtime.js'
import { type FreshnessChange, FreshnessMonitor } from '../../../src/client/buildings/freshness.js'
import { FakeClock } from '../../helper/fake-clock.js'
import { checkProperty } from '../../helper/property.js'

const entryAt = (timestamp?: PositionEntry['timestamp']): PositionEntry => ({
  transmitterId: 'T1',
  position: { x: 0, y: 0 },
  positionMethod: 'nearest',
  floorId: 'f-1',
  ...(timestamp !== undefined && { timestamp })
})

const setUp = () => {
  const clock = new FakeClock()
  const changes: FreshnessChange[] = []
  const monitor = new FreshnessMonitor(clock, (change) => void changes.push(change))
  return {
    clock,
    changes,
    monitor,
    /** A batch with a position that is this old. */
    batch: (ageMs = 0) => monitor.batch('f-1', [entryAt(clock.now() - ageMs)]),
    state: () => monitor.state('f-1')
  }
}

t.test('the freshness of a floor', async (t) => {
  t.test('a floor is unknown before its first batch, and then live', async (t) => {
    const { monitor, changes, batch, state } = setUp()
    t.equal(state(), 'unknown')
    t.equal(monitor.ageMs('f-1'), null)
    batch(200)

    t.equal(state(), 'live')
    t.equal(monitor.ageMs('f-1'), 200)
    t.same(changes, [{ floorId: 'f-1', state: 'live', ageMs: 200 }])
    t.equal(monitor.state('f-2'), 'unknown')
  })

  t.test('a floor with a batch per second is stale after five seconds, and live with the next batch', async (t) => {
    const { clock, changes, batch, state } = setUp()
    for (let second = 0; second < 30; second += 1) {
      batch()
      clock.advance(1000)
    }
    clock.advance(3999)
    t.equal(state(), 'live')
    clock.advance(1)
    t.equal(state(), 'stale')
    t.same(changes.at(-1), { floorId: 'f-1', state: 'stale', ageMs: 5000 })
    clock.advance(600_000)
    batch()

    t.same(
      changes.map(({ state }) => state),
      ['live', 'stale', 'live']
    )
  })

  t.test('a floor with a batch per minute is stale after two minutes', async (t) => {
    const { clock, batch, state } = setUp()
    batch()
    clock.advance(60_000)
    batch()
    clock.advance(119_999)
    t.equal(state(), 'live')
    clock.advance(1)

    t.equal(state(), 'stale')
  })

  t.test('one outage does not change when a floor is stale', async (t) => {
    const { clock, batch, state } = setUp()
    for (const waitMs of [1000, 1000, 600_000, 1000]) {
      batch()
      clock.advance(waitMs)
    }
    batch()
    clock.advance(5000)

    t.equal(state(), 'stale')
  })

  t.test('a batch with old positions is as old as its newest position', async (t) => {
    const { monitor, clock, state } = setUp()
    monitor.batch('f-1', [entryAt(clock.now() - 70_000), entryAt(clock.now() - 8000), entryAt('2001-01-01T00:00:00Z')])

    t.equal(state(), 'stale')
    t.equal(monitor.ageMs('f-1'), 8000)
  })

  t.test('a publisher that repeats the same positions becomes stale', async (t) => {
    const { monitor, clock, state } = setUp()
    const entry = entryAt(clock.now())
    for (let second = 0; second < 5; second += 1) {
      monitor.batch('f-1', [entry])
      t.equal(state(), 'live')
      clock.advance(1000)
    }
    monitor.batch('f-1', [entry])

    t.equal(state(), 'stale')
  })

  const arrivals: readonly (readonly [title: string, entries: (nowMs: number) => readonly PositionEntry[]])[] = [
    ['without timestamps', () => [entryAt()]],
    ['with null timestamps', () => [entryAt(null)]],
    ['with timestamps that are not times', () => [entryAt('yesterday')]],
    ['with timestamps in the future', (nowMs) => [entryAt(nowMs + 60_000)]],
    ['without positions', () => []]
  ]
  for (const [title, entries] of arrivals) {
    t.test(`a batch ${title} is as new as its arrival`, async (t) => {
      const { monitor, clock, state } = setUp()
      monitor.batch('f-1', entries(clock.now()))
      t.equal(monitor.ageMs('f-1'), 0)
      clock.advance(4999)
      t.equal(state(), 'live')
      clock.advance(1)

      t.equal(state(), 'stale')
    })
  }

  t.test('a position from 1970 does not make the usual interval longer than an hour', async (t) => {
    const { monitor, clock, batch, state } = setUp()
    monitor.batch('f-1', [entryAt(0)])
    batch()
    t.equal(state(), 'live')
    clock.advance(2 * 3_600_000)

    t.equal(state(), 'stale')
  })

  t.test('a floor that is no longer watched is unknown and has no timer', async (t) => {
    const { monitor, clock, changes, batch, state } = setUp()
    batch()
    monitor.batch('f-2', [])
    t.equal(clock.pendingTimers, 2)
    monitor.forget('f-1')
    monitor.forget('f-1')
    t.equal(state(), 'unknown')
    monitor.clear()

    t.equal(clock.pendingTimers, 0)
    t.same(changes.slice(2), [
      { floorId: 'f-1', state: 'unknown', ageMs: null },
      { floorId: 'f-2', state: 'unknown', ageMs: null }
    ])
  })

  t.test('a stale floor is reported after a sleep of the computer, whose timers stopped', async (t) => {
    const { clock, changes, batch, state } = setUp()
    batch()
    clock.sleep(60_000)
    t.equal(state(), 'stale')
    clock.advance(0)

    t.same(changes.at(-1), { floorId: 'f-1', state: 'stale', ageMs: 60_000 })
  })

  t.test('events and states agree with a model for random batches', async (t) => {
    const steps = fc.array(
      fc.record({ waitMs: fc.oneof(fc.integer({ max: 3000, min: 1 }), fc.nat(90_000)), lateMs: fc.nat(8000) }),
      { maxLength: 60 }
    )
    await checkProperty(
      t,
      fc.property(steps, (list) => {
        const { clock, changes, batch, state } = setUp()
        const gaps: number[] = []
        let newestMs: number | null = null
        const expected = (): string => {
          if (newestMs === null) return 'unknown'
          const sorted = gaps.slice(-20).sort((one, other) => other - one)
          return clock.now() - newestMs < Math.max(2 * (sorted[1] ?? sorted[0] ?? 0), 5000) ? 'live' : 'stale'
        }
        for (const { waitMs, lateMs } of list) {
          clock.advance(waitMs)
          assert.equal(state(), expected())
          assert.equal(changes.at(-1)?.state ?? 'unknown', expected(), 'the last event is the state')
          const timeMs = clock.now() - lateMs
          batch(lateMs)
          if (newestMs !== null && timeMs > newestMs) gaps.push(timeMs - newestMs)
          newestMs = Math.max(newestMs ?? 0, timeMs)
          assert.equal(state(), expected())
        }
        const states = changes.map((change) => change.state)
        assert.ok(
          states.every((one, index) => one !== states[index - 1]),
          'an event is a change'
        )
      }),
      { numRuns: 500 }
    )
  })
})
