import t, { type Test } from 'tap'
import type { PositionEntry } from '../../../schemas/realtime.js'
import type { PositionEvents } from '../../../src/client/buildings/position-events.js'
import { Positions, type PositionsOptions } from '../../../src/client/buildings/positions.js'
import { eventually } from '../../helper/eventually.js'
import { FakeClock } from '../../helper/fake-clock.js'
import { openRealtime, publishUntil } from '../../helper/realtime.js'
import { startRelay } from '../../helper/relay.js'

/** The next event that matches. */
const next = <Name extends keyof PositionEvents>(
  positions: Positions,
  name: Name,
  holds: (event: PositionEvents[Name]) => boolean = () => true
): Promise<PositionEvents[Name]> =>
  new Promise((resolve) => {
    const leave = positions.on(name, (event) => {
      if (!holds(event)) return
      leave()
      resolve(event)
    })
  })

const batch = (floorId: string, x: number, transmitterId = 'T1', more: Partial<PositionEntry> = {}) => ({
  type: 'position-batch',
  data: [{ transmitterId, position: { x, y: 0 }, positionMethod: 'nearest', floorId, ...more }]
})

const ambient = {
  type: 'ambient-batch',
  data: [{ deviceId: 'D1', deviceType: 'phone', manufacturer: 'Example', receiverId: 'r', rssi: -60, timestamp: 1 }]
}

/** A relay with its default configuration, and a client of it. */
const setUp = async (t: Test, options: PositionsOptions = {}) => {
  const relay = await startRelay(t)
  const realtime = openRealtime(t, relay, options.clock ? { clock: options.clock } : {})
  const positions = new Positions(realtime, options)
  t.teardown(() => positions.close())
  return { ...relay, realtime, positions }
}

t.test('positions', async (t) => {
  t.test('a client without a floor receives global:all, after which it is released', async (t) => {
    const { positions, publish, relay } = await setUp(t)
    t.equal(positions.lastUpdateMs, null)
    const received = next(positions, 'ambient-batch')
    const release = positions.watchAll()
    t.same(await publishUntil(received, () => publish('global:all', ambient)), ambient)
    t.ok(positions.lastUpdateMs)
    release()

    await eventually(() => !relay.openChannels.has('global:all'))
  })

  t.test('a position batch on global:all has no floor', async (t) => {
    const { positions, publish } = await setUp(t)
    const received = next(positions, 'position-batch')
    positions.watchAll()
    const { floorId, data } = await publishUntil(received, () => publish('global:all', batch('f-2', 3)))

    t.equal(floorId, null)
    t.match(data, [{ transmitterId: 'T1', floorId: 'f-2' }])
  })

  t.test('the client receives a watched floor and stores the positions', async (t) => {
    const { positions, publish } = await setUp(t)
    positions.watchFloor(7)
    const received = await publishUntil(next(positions, 'position-batch'), () => publish('floor:7', batch('7', 3)))

    t.match(received, { ...batch('7', 3), floorId: '7' })
    t.equal(positions.store.get('T1')?.entry.position.x, 3)
  })

  t.test('showing another floor unsubscribes from the previous one', async (t) => {
    const { positions, publish, api } = await setUp(t)
    const channels = async (): Promise<string[]> =>
      Object.keys(JSON.parse((await api('channels', {})).body).result.channels)
    positions.showFloor('a')
    await publishUntil(next(positions, 'position-batch'), () => publish('floor:a', batch('a', 1)))
    positions.showFloor('b')
    await eventually(async () => {
      const names = await channels()
      return !names.includes('floor:a') && names.includes('floor:b')
    })

    const floors: (string | null)[] = []
    positions.on('position-batch', ({ floorId }) => void floors.push(floorId))
    const last = next(positions, 'position-batch', ({ data }) => data[0]?.position.x === 3)
    await publish('floor:a', batch('a', 2))
    await publish('floor:b', batch('b', 3, 'T2'))
    await last
    t.same(floors, ['b'], 'no position of the old floor is reported')
    t.same([...positions.store.positions.keys()], ['T2'], 'no position of the old floor is stored')

    positions.showFloor(null)
    await eventually(async () => !(await channels()).includes('floor:b'))
    t.same([...positions.store.positions.keys()], [])
  })

  t.test('a floor stays subscribed until its last watcher releases it', async (t) => {
    const { positions, publish } = await setUp(t)
    const release = positions.watchFloor('a')
    positions.watchFloor('a')
    await publishUntil(next(positions, 'position-batch'), () => publish('floor:a', batch('a', 1)))
    release()
    const received = next(positions, 'position-batch', ({ data }) => data[0]?.position.x === 2)
    await publish('floor:a', batch('a', 2))

    await received
    t.equal(positions.store.positions.size, 1)
  })

  t.test('a malformed publication is ignored and counted', async (t) => {
    const { positions, publish } = await setUp(t)
    positions.watchFloor('a')
    for (const bad of [7, {}, { type: '', data: [] }, { type: 'position-batch', data: [null] }]) {
      const before = positions.badPayloads
      await eventually(async () => {
        await publish('floor:a', bad)
        return positions.badPayloads > before
      })
    }
    t.equal(positions.lastUpdateMs, null)
    t.equal(positions.store.positions.size, 0)
  })

  t.test('a publication with another type is reported as it is', async (t) => {
    const { positions, publish } = await setUp(t)
    positions.watchAll()
    const message = { type: 'alerts', data: [{ kind: 'battery-low', open: 3 }] }
    const received = publishUntil(next(positions, 'publication'), () => publish('global:all', message))

    t.same(await received, { channel: 'global:all', data: message })
    t.equal(positions.badPayloads, 0)
    t.equal(positions.lastUpdateMs, null)
  })

  t.test('a malformed entry is dropped and the others are kept', async (t) => {
    const { positions, publish } = await setUp(t)
    const good = batch('a', 2)
    positions.watchFloor('a')
    const received = publishUntil(next(positions, 'position-batch'), () =>
      publish('floor:a', { ...good, data: [{ transmitterId: 'T9' }, ...good.data] })
    )

    t.same((await received).data, good.data)
    t.ok(positions.badPayloads > 0)
    t.same([...positions.store.positions.keys()], ['T1'])
  })

  t.test('a transmitter without a recent update is removed and reported with its last position', async (t) => {
    const clock = new FakeClock()
    const { positions, publish } = await setUp(t, { clock, maxAgeMs: 1000 })
    positions.watchFloor('a')
    await publishUntil(next(positions, 'position-batch'), () => publish('floor:a', batch('a', 1)))
    t.equal(positions.store.positions.size, 1)
    const removed = next(positions, 'removed')
    clock.advance(1500)

    t.match(await removed, { entry: { transmitterId: 'T1', position: { x: 1, y: 0 } } })
    t.equal(positions.store.positions.size, 0)
  })

  t.test('a floor is live while batches arrive, then stale with all its positions, then live again', async (t) => {
    const clock = new FakeClock()
    const { positions, publish } = await setUp(t, { clock })
    const changes: PositionEvents['freshness'][] = []
    positions.on('freshness', (change) => void changes.push(change))
    const release = positions.watchFloor('a')
    t.equal(positions.freshness('a'), 'unknown')
    const timestamp = clock.now() - 100
    await publishUntil(next(positions, 'position-batch'), () => publish('floor:a', batch('a', 1, 'T1', { timestamp })))
    t.equal(positions.freshness('a'), 'live')
    clock.advance(10_000)

    t.equal(positions.freshness('a'), 'stale')
    t.equal(positions.ageMs('a'), 10_100)
    t.equal(positions.store.ageMs('T1'), 10_100, 'the position stays, with its age')

    const back = next(positions, 'position-batch', ({ data }) => data[0]?.position.x === 2)
    await publish('floor:a', batch('a', 2, 'T1', { timestamp: clock.now() }))
    await back
    release()
    t.same(changes, [
      { floorId: 'a', state: 'live', ageMs: 100 },
      { floorId: 'a', state: 'stale', ageMs: 5000 },
      { floorId: 'a', state: 'live', ageMs: 0 },
      { floorId: 'a', state: 'unknown', ageMs: null }
    ])
  })

  t.test('the snapshot of a floor is stored as one batch, and live positions follow', async (t) => {
    const clock = new FakeClock()
    const { positions, publish } = await setUp(t, { clock })
    const nowMs = clock.now()
    await publish('floor:a', batch('a', 1, 'T1', { timestamp: nowMs - 3000 }))
    await publish('floor:a', batch('a', 1, 'T2', { timestamp: nowMs - 2000 }))
    await publish('floor:a', batch('a', 2, 'T1', { timestamp: nowMs - 1000 }))
    const sizes: number[] = []
    positions.on('position-batch', ({ data }) => void sizes.push(data.length))
    const snapshot = next(positions, 'position-batch')
    positions.watchFloor('a')
    await snapshot
    t.same(
      ['T1', 'T2'].map((id) => [positions.store.get(id)?.entry.position.x, positions.store.ageMs(id)]),
      [
        [2, 1000],
        [1, 2000]
      ]
    )
    t.equal(positions.ageMs('a'), 1000)

    const live = next(positions, 'position-batch', ({ data }) => data[0]?.position.x === 3)
    await publish('floor:a', batch('a', 3, 'T1', { timestamp: nowMs }))
    await live
    t.same(sizes, [2, 1])
    t.equal(positions.freshness('a'), 'live')
  })

  t.test('a late entry neither replaces a newer position nor is reported', async (t) => {
    const clock = new FakeClock()
    const { positions, publish } = await setUp(t, { clock })
    const nowMs = clock.now()
    positions.watchFloor('a')
    await publishUntil(next(positions, 'position-batch'), () =>
      publish('floor:a', batch('a', 2, 'T1', { timestamp: nowMs }))
    )
    const reported = new Set<string>()
    positions.on('position-batch', ({ data }) => {
      for (const { transmitterId, position } of data) reported.add(`${transmitterId} at ${position.x}`)
    })
    const last = next(positions, 'position-batch', ({ data }) => data[0]?.transmitterId === 'T3')
    const late = batch('a', 1, 'T1', { timestamp: nowMs - 2000 })
    await publish('floor:a', late)
    await publish('floor:a', { ...late, data: [...late.data, ...batch('a', 1, 'T2').data] })
    await publish('floor:a', batch('a', 1, 'T3'))
    await last

    // The first publication may have been repeated.
    reported.delete('T1 at 2')
    t.same([...reported], ['T2 at 1', 'T3 at 1'])
    t.equal(positions.store.get('T1')?.entry.position.x, 2)
  })

  t.test('the positions and their freshness are forgotten when the user signs out', async (t) => {
    const clock = new FakeClock()
    const { positions, publish, realtime } = await setUp(t, { clock })
    positions.watchFloor('a')
    await publishUntil(next(positions, 'position-batch'), () => publish('floor:a', batch('a', 1)))
    realtime.stop()
    t.equal(positions.store.positions.size, 1, 'they stay while the client is disconnected')
    realtime.endSession()
    t.equal(positions.store.positions.size, 0)
    t.equal(positions.freshness('a'), 'unknown')

    realtime.start()
    await publishUntil(next(positions, 'position-batch'), () => publish('floor:a', batch('a', 3)))
    t.equal(positions.store.positions.size, 1)
    positions.close()
    t.equal(clock.pendingTimers, 0)
  })
})
