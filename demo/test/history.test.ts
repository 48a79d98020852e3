import t from 'tap'
import type { PositionEntry } from '../../schemas/realtime.js'
import { PathRecorder } from '../backend/history/path-recorder.js'
import { type Sighting, staysOf } from '../backend/history/stays.js'
import { heatMapOf, type StoredPoint, type TrackPoint, tracksOf } from '../backend/history/tracks.js'
import { type Carrier, Simulation } from '../backend/simulator/simulation.js'

const SECOND = 1000
const MINUTE = 60 * SECOND

const entry = (x: number, y: number, more: Partial<PositionEntry> = {}): PositionEntry => ({
  transmitterId: 'A',
  position: { x, y },
  positionMethod: 'trilateration',
  floorId: 'f-1',
  zoneId: '1',
  ...more
})

/** Records one position per second. Returns the stored points as `second x y`. */
const record = (recorder: PathRecorder, entries: readonly PositionEntry[]): string[] =>
  entries
    .flatMap((position, second) => recorder.add([position], second * SECOND))
    .map(({ atMs, x, y }) => `${atMs / SECOND} ${x} ${y}`)

t.test('the path recorder', async (t) => {
  t.test('the path recorder stores the ends of straight lines and of pauses', async (t) => {
    const east = Array.from({ length: 10 }, (_, second) => entry(second, 5))
    const pause = Array.from({ length: 20 }, () => entry(9, 5))
    const south = Array.from({ length: 10 }, (_, second) => entry(9, 6 + second))
    t.same(record(new PathRecorder(), [...east, ...pause, ...south]), ['0 0 5', '9 9 5', '29 9 5'])
  })

  t.test('the path recorder stores the first position in a zone', async (t) => {
    const walk = Array.from({ length: 10 }, (_, second) => entry(second, 5, { zoneId: second < 4 ? '1' : '2' }))
    t.same(record(new PathRecorder(), walk), ['0 0 5', '4 4 5'])
  })

  t.test('the path recorder stores the last position on a floor and the first on the next', async (t) => {
    const walk = Array.from({ length: 10 }, (_, second) => entry(second, 5, { floorId: second < 4 ? 'f-1' : 'f-2' }))
    t.same(record(new PathRecorder(), walk), ['0 0 5', '3 3 5', '4 4 5'])
  })

  t.test('the path recorder stores a position per minute of a transmitter that rests', async (t) => {
    t.same(
      record(
        new PathRecorder(),
        Array.from({ length: 150 }, () => entry(1, 1))
      ),
      ['0 1 1', '60 1 1', '120 1 1']
    )
  })

  t.test(
    'the path recorder stores the last position of a transmitter that disappears, and when it disappeared',
    async (t) => {
      const recorder = new PathRecorder()
      record(recorder, [entry(1, 1), entry(2, 1), entry(3, 1)])
      t.match(recorder.add([], 3 * SECOND), [
        { transmitterId: 'A', floorId: 'f-1', x: 3, atMs: 2 * SECOND },
        { transmitterId: 'A', floorId: null, zoneId: null, atMs: 3 * SECOND }
      ])
      t.same(recorder.add([], 4 * SECOND), [])
    }
  )

  t.test('all positions of walking people are within the tolerance of the stored paths', async (t) => {
    const carriers: readonly Carrier[] = Array.from({ length: 20 }, (_, index) => ({
      transmitterId: `t-${index}`,
      isPerson: true,
      floorId: `f-${(index % 9) + 1}`,
      departmentId: null
    }))
    const simulation = new Simulation(11)
    simulation.populate(carriers)
    const recorder = new PathRecorder()
    const seen = Array.from({ length: 600 }, (_, second) => {
      simulation.advance(SECOND)
      return simulation.positions(second * SECOND)
    })
    const stored = [
      ...seen.flatMap((positions, second) => recorder.add(positions, second * SECOND)),
      ...recorder.add([], 0)
    ]

    const deviations = seen.flatMap((positions, second) =>
      positions.map(({ transmitterId, position, floorId }) => {
        const path = stored.filter((point) => point.transmitterId === transmitterId)
        const after = path.findIndex(({ atMs }) => atMs >= second * SECOND)
        const [end, start] = [path[after], path[Math.max(after - 1, 0)]]
        if (!start || !end || end.floorId !== floorId) return Number.POSITIVE_INFINITY
        const part = end === start ? 0 : (second * SECOND - start.atMs) / (end.atMs - start.atMs)
        const [x, y] = [start.x + (end.x - start.x) * part, start.y + (end.y - start.y) * part]
        return Math.hypot(x - position.x, y - position.y)
      })
    )
    t.ok(Math.max(...deviations) <= 0.301, String(Math.max(...deviations)))
    t.ok(stored.length < seen.flat().length / 6, `${stored.length} of ${seen.flat().length} positions are stored`)
  })
})

t.test('a transmitter that was on another floor or silent has two tracks', async (t) => {
  const at = (second: number, isHere = true): StoredPoint => [second * SECOND, 1, 1, null, isHere]
  const secondsOf = (...points: StoredPoint[]) =>
    tracksOf('A', points, 400 * SECOND).map((track) => track.points.map(([ms]) => ms / SECOND))
  t.same(
    secondsOf(at(0), at(60), at(61, false), at(70), at(370)),
    [
      [0, 60, 61],
      [70, 370, 400]
    ],
    'also for a few seconds'
  )
  t.same(secondsOf(at(0), at(400)), [[0, 400]], 'the last position holds, and the end is not added twice')
  t.same(secondsOf(at(0, false)), [])
  t.same(tracksOf('A', [], 0), [])
})

t.test('a heat map', async (t) => {
  const size = { width: 10, height: 4 }
  const heatOf = (lengthMs: number, ...points: TrackPoint[]) =>
    heatMapOf([{ transmitterId: 'A', points }], size, lengthMs)

  t.test('a heat map counts the seconds in each cell', async (t) => {
    const { columns, rows, seconds } = heatOf(MINUTE, [0, 2.5, 1.5, null], [30 * SECOND, 2.5, 1.5, null])
    t.same([columns, rows, seconds.length], [10, 4, 40])
    t.equal(seconds[12], 30)
    t.equal(
      seconds.reduce((sum, one) => sum + one),
      30
    )
  })

  t.test('a heat map distributes the time of a walk over its cells', async (t) => {
    const { seconds } = heatOf(2 * MINUTE, [0, 0, 0.5, null], [50 * SECOND, 10, 0.5, null])
    t.same(
      seconds.slice(0, 10),
      Array.from({ length: 10 }, () => 5)
    )
  })

  t.test('a heat map counts an unknown route as a stay at the last known position', async (t) => {
    const { seconds } = heatOf(4 * MINUTE, [-MINUTE, 0.5, 0.5, null], [3 * MINUTE, 9.5, 0.5, null])
    t.equal(seconds[0], 180)
    t.equal(
      seconds.reduce((sum, one) => sum + one),
      180
    )
  })

  t.test('a heat map ignores positions outside of its range and of the plan', async (t) => {
    const { seconds } = heatOf(10 * SECOND, [-20 * SECOND, 1, 1, null], [0, 1, 1, null], [20 * SECOND, 1, 1, null])
    t.equal(seconds[11], 10)
    t.equal(
      heatOf(MINUTE, [0, -3, 99, null], [MINUTE, -3, 99, null]).seconds.every((one) => one === 0),
      true
    )
  })
})

t.test('stays', async (t) => {
  const at = (second: number, zoneId: string | null, floorId: string | null = 'f-1'): Sighting => ({
    floorId,
    floorName: floorId,
    buildingName: null,
    zoneId,
    zoneName: zoneId,
    atMs: second * SECOND
  })

  t.test('stays are the stays in zones, newest first', async (t) => {
    const stays = staysOf([at(0, '1'), at(60, '1'), at(90, '2'), at(120, '2'), at(130, null)])
    t.same(
      stays.map(({ zoneId, fromMs, toMs }) => [zoneId, fromMs / SECOND, toMs / SECOND]),
      [
        [null, 130, 130],
        ['2', 90, 130],
        ['1', 0, 90]
      ]
    )
  })

  t.test('stays do not contain passages, except the current zone', async (t) => {
    const zones = staysOf([at(0, '1'), at(60, '2'), at(65, '3'), at(100, '4')]).map(({ zoneId }) => zoneId)
    t.same(zones, ['4', '3', '1'])
  })

  t.test('stays distinguish floors outside of zones', async (t) => {
    t.equal(staysOf([at(0, null), at(60, null, 'f-2'), at(90, null, 'f-2')]).length, 2)
    t.same(staysOf([]), [])
  })

  t.test('stays end when the transmitter is not heard, and the last one lasts until now', async (t) => {
    const away = staysOf([at(0, '1'), at(60, null, null), at(200, '1')], 260 * SECOND)
    t.same(
      away.map(({ fromMs, toMs }) => [fromMs / SECOND, toMs / SECOND]),
      [
        [200, 260],
        [0, 60]
      ]
    )
    t.same(staysOf([at(0, '1'), at(60, null, null)], 100 * SECOND).length, 1)
  })
})
