import t, { type Test } from 'tap'
import { Positions } from '../../../src/client/buildings/positions.js'
import { eventually } from '../../helper/eventually.js'
import { openRealtime } from '../../helper/realtime.js'
import { startRelay } from '../../helper/relay.js'

const FLOOR = '1'

const FILE = {
  channel: {
    namespaces: [
      {
        name: 'floor',
        allow_subscribe_for_client: true,
        history_size: 100,
        history_ttl: '60s',
        force_recovery: true,
        force_positioning: true,
        conflate: 'data[].transmitterId',
        entry_time: 'timestamp',
        snapshot: true,
        view_x: 'position.x',
        view_y: 'position.y',
        view_cell: 10
      },
      { name: 'global', allow_subscribe_for_client: true }
    ]
  }
}

/** The part that is asked for is twice as long: from -5 to 15, in whole cells from -10 to 20. */
const CORNER = { x: 0, y: 0, w: 10, h: 10 }
const FAR_CORNER = { x: 500, y: 500, w: 10, h: 10 }
const NOWHERE = { x: 900, y: 900, w: 10, h: 10 }

type Places = Readonly<Record<string, number>>

/** A client that watches a floor. Positions are on the diagonal. */
const setUp = async (t: Test) => {
  const relay = await startRelay(t, FILE)
  const realtime = openRealtime(t, relay)
  const positions = new Positions(realtime)
  t.teardown(() => positions.close())
  const log: string[] = []
  positions.on('removed', ({ entry }) => log.push(`removed ${entry.transmitterId}`))
  positions.on('position-batch', ({ data }) => log.push(`batch ${data.map((entry) => entry.transmitterId).sort()}`))
  const shown = (): string => [...positions.store.positions.keys()].sort().join()
  return {
    ...relay,
    realtime,
    positions,
    log,
    shown,
    shows: (names: string) => eventually(() => shown() === names, { label: `${names} shown` }),
    move: async (places: Places): Promise<void> => {
      const data = Object.entries(places).map(([transmitterId, at]) => ({
        transmitterId,
        position: { x: at, y: at },
        positionMethod: 'nearest',
        floorId: FLOOR,
        timestamp: Date.now()
      }))
      await relay.publish(`floor:${FLOOR}`, { type: 'position-batch', data })
    }
  }
}

t.test('a view that is set while the floor is subscribed to limits it to the positions inside', async (t) => {
  const { realtime, positions, move, shown, shows } = await setUp(t)
  await move({ a: 5, b: 505 })
  realtime.start()
  await eventually(() => realtime.state === 'online')
  positions.watchFloor(FLOOR)
  positions.setView(FLOOR, CORNER)
  await shows('a')
  t.same(positions.view(FLOOR), { x: -10, y: -10, w: 30, h: 30 })
  await move({ a: 6, b: 506, c: 7 })
  await shows('a,c')
  t.equal(positions.store.get('a')?.entry.position.x, 6)
  t.equal(shown(), 'a,c')
})

t.test('a position that leaves the view is removed, and is not in a batch after that', async (t) => {
  const { positions, move, log, shows } = await setUp(t)
  positions.setView(FLOOR, CORNER)
  positions.watchFloor(FLOOR)
  await eventually(() => positions.view(FLOOR) !== null)
  await move({ a: 5, b: 6 })
  await shows('a,b')
  log.length = 0
  await move({ a: 300, b: 7 })
  await shows('b')
  await move({ a: 5 })
  await shows('a,b')
  t.same(log, ['removed a', 'batch b', 'batch a'])
})

t.test('a view that moves keeps the shown positions until those of the new part have arrived', async (t) => {
  const { positions, move, log, shown, shows } = await setUp(t)
  await move({ a: 5, b: 505 })
  positions.watchFloor(FLOOR)
  positions.setView(FLOOR, CORNER)
  await shows('a')
  log.length = 0
  // Also the second request of two in a row is granted.
  positions.setView(FLOOR, NOWHERE)
  positions.setView(FLOOR, FAR_CORNER)
  t.equal(shown(), 'a')
  await shows('b')
  t.equal(log.at(-1), 'removed a')
})

t.test('a floor without a view has all positions again, also those that were not repeated meanwhile', async (t) => {
  const { positions, move, shows } = await setUp(t)
  await move({ a: 5, silent: 505 })
  positions.watchFloor(FLOOR)
  await shows('a,silent')
  positions.setView(FLOOR, CORNER)
  await shows('a')
  await move({ a: 6 })
  positions.setView(FLOOR, null)
  await shows('a,silent')
  t.equal(positions.view(FLOOR), null)
})

t.test('a client that reconnects keeps its view, and misses no position that has left it', async (t) => {
  const { positions, api, move, shows } = await setUp(t)
  await move({ a: 5, b: 6, c: 505 })
  positions.watchFloor(FLOOR)
  positions.setView(FLOOR, CORNER)
  await shows('a,b')
  await api('disconnect', { user: '42', disconnect: { code: 3001, reason: 'a restart' } })
  await move({ a: 300, d: 7 })
  await shows('b,d')
  t.same(positions.view(FLOOR), { x: -10, y: -10, w: 30, h: 30 })
})

t.test('an empty part of a floor is live while the client is connected', async (t) => {
  const { positions, move, shown } = await setUp(t)
  await move({ a: 5 })
  positions.setView(FLOOR, NOWHERE)
  positions.watchFloor(FLOOR)
  await eventually(() => positions.freshness(FLOOR) === 'live')
  t.equal(shown(), '')
})
