import t from 'tap'
import type { PositionEntry } from '../../schemas/realtime.js'
import { HISTORY_MS, PositionHistory } from '../backend/positions/history.js'
import { FLOORS } from '../backend/site/layout.js'
import { form, PNG, startTestBackend } from './demo-backend.js'

const backend = await startTestBackend(t)
const { simulator, alerts } = backend.backend
// As at the start of the demo.
await simulator.backfill()
await simulator.tick()
const viewer = await backend.signIn('viewer')
const read = async (path: string, token: string | null = viewer) => backend.request('GET', path, token)
const dataOf = async (path: string) => (await read(path)).json().data

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

/** Adds one position per second; null for a second in which the transmitter is not heard. */
const historyOf = (entries: readonly (PositionEntry | null)[]): PositionHistory => {
  const history = new PositionHistory()
  for (const [second, position] of entries.entries()) history.add(position === null ? [] : [position], second * SECOND)
  return history
}

const repeated = (count: number, of: (index: number) => PositionEntry | null) =>
  Array.from({ length: count }, (_, index) => of(index))

t.test('the position history', async (t) => {
  const cases: readonly (readonly [string, readonly (PositionEntry | null)[], readonly string[]])[] = [
    [
      'the start and the end of pauses',
      [entry(1, 5), entry(2, 5), ...repeated(20, () => entry(3, 5)), entry(3, 6)],
      ['0 1 5', '1 2 5', '2 3 5', '21 3 5', '22 3 6']
    ],
    [
      'the first position in a zone and on a floor',
      [entry(1, 5), entry(1, 5, { zoneId: '2' }), entry(1, 5, { floorId: 'f-2' })],
      ['0 1 5', '1 1 5', '2 1 5']
    ],
    [
      'the last position of a transmitter that disappears, and when it disappeared',
      [entry(1, 1), entry(3, 1), entry(3, 1), null, null],
      ['0 1 1', '1 3 1', '2 3 1', '3 3 1 gone', '4 3 1 gone']
    ]
  ]
  for (const [title, entries, kept] of cases) {
    t.test(`the position history keeps ${title}`, async (t) => {
      const path = historyOf(entries).pathOf('A')
      t.same(
        path.map(({ atMs, x, y, floorId }) => `${atMs / SECOND} ${x} ${y}${floorId === null ? ' gone' : ''}`),
        kept
      )
    })
  }

  t.test('the position history ends after 15 minutes', async (t) => {
    const history = historyOf([...repeated(20 * 60, (second) => entry(second % 7, 5)), ...repeated(60, () => null)])
    const [first, second] = history.pathOf('A')
    const endMs = (21 * 60 - 1) * SECOND
    t.ok(first && second && first.atMs <= endMs - HISTORY_MS && second.atMs > endMs - HISTORY_MS)
    history.add([], endMs + HISTORY_MS + 2 * MINUTE)
    t.same(history.transmitterIds(), [], 'also for a transmitter that is not heard any more')
  })

  t.test('a transmitter that was on another floor or silent has two tracks', async (t) => {
    const elsewhere = repeated(10, (second) =>
      entry(second, 5, { floorId: second === 4 || second === 5 ? 'f-2' : 'f-1' })
    )
    for (const entries of [elsewhere, elsewhere.map((one) => (one?.floorId === 'f-2' ? null : one))]) {
      const tracks = historyOf(entries).tracks('f-1', 0, 20 * SECOND)
      t.same(
        tracks.map(({ points }) => [points[0]?.[0], points.at(-1)?.[0]]),
        [
          [0, 4000],
          [6000, 20_000]
        ]
      )
    }
    t.same(historyOf(elsewhere).tracks('f-3', 0, 20 * SECOND), [])
    t.match(historyOf(elsewhere).tracks('f-1', 7000, 8000), [
      {
        points: [
          [0, 7, 5, '1'],
          [1000, 8, 5, '1']
        ]
      }
    ])
  })
})

interface Track {
  readonly transmitterId: string
  readonly points: readonly (readonly [number, number, number, string | null])[]
}

t.test('the positions of the last minutes', async (t) => {
  t.test('the simulated site has alerts of most kinds at the start', async (t) => {
    await alerts.run()
    const kinds: { kind: string; open: number }[] = await dataOf('/api/alerts/summary')
    t.ok(kinds.filter(({ open }) => open > 0).length >= 3, JSON.stringify(kinds))
    t.ok(kinds.every(({ open }) => open < 30))
  })

  t.test('the tracks of a floor end at the current positions and do not leave it', async (t) => {
    const { tracks } = await dataOf('/api/positions/tracks/f-2')
    const ends = new Map(tracks.map(({ transmitterId, points }: Track) => [transmitterId, points.at(-1)?.slice(1, 3)]))
    const { positions } = await dataOf('/api/context/floor/f-2')
    t.ok(positions.length > 10)
    for (const { transmitterId, position } of positions)
      t.same(ends.get(transmitterId), [position.x, position.y], transmitterId)
    const floor = FLOORS.find(({ floorId }) => floorId === 'f-2')
    const points: Track['points'] = tracks.flatMap((track: Track) => track.points)
    t.ok(points.every(([, x, y]) => x <= Number(floor?.width) && y <= Number(floor?.height)))
  })

  t.test('tracks are limited to the requested range and transmitter', async (t) => {
    const to = Date.now() - 5 * MINUTE
    const { tracks } = await dataOf(`/api/positions/tracks/f-1?from=${to - 5 * MINUTE}&to=${to}`)
    const times: number[] = tracks.flatMap(({ points }: Track) => points.map(([ms]) => ms))
    t.ok(times.length > 50 && Math.max(...times) <= 5 * MINUTE)
    const [{ transmitterId }] = tracks
    const own: Track[] = (await dataOf(`/api/positions/tracks/f-1?transmitterId=${transmitterId}`)).tracks
    t.ok(own.length > 0 && own.every((track) => track.transmitterId === transmitterId))
  })

  t.test('the list of positions is filtered and paged, the newest first', async (t) => {
    const { data, meta } = (await read('/api/positions/history?floorId=f-3&limit=20')).json()
    t.same([data.length, meta.limit, meta.offset], [20, 20, 0])
    t.ok(meta.total > 100 && data.every(({ floorId }: { floorId: string }) => floorId === 'f-3'))
    const times = data.map(({ at }: { at: string }) => at)
    t.same(times, times.toSorted().toReversed())
    const { transmitterId } = data[0]
    const own = (
      await read(`/api/positions/history?transmitterId=${transmitterId}&to=${Date.now() - 5 * MINUTE}`)
    ).json()
    t.ok(
      own.data.every(
        (row: Track & { at: string }) =>
          row.transmitterId === transmitterId && Date.parse(row.at) < Date.now() - 4 * MINUTE
      )
    )
  })

  t.test('an asset has its positions with the names of zones', async (t) => {
    const data = await dataOf('/api/assets/7/history')
    t.ok(data.length > 1 && data.every(({ zoneName, at }: Record<string, string>) => zoneName && at))
    t.equal((await read('/api/assets/none/history')).status, 404)
  })

  t.test('the occupancy has the people on every floor', async (t) => {
    const { at, floors } = await dataOf('/api/positions/occupancy')
    t.ok(at.length >= 29 && at.length <= 31, `${at.length} counts`)
    t.same(
      floors.map(({ floorId }: { floorId: string }) => floorId),
      FLOORS.map(({ floorId }) => floorId)
    )
    const totals = at.map((_: number, index: number) =>
      floors.reduce((sum: number, { people }: { people: number[] }) => sum + Number(people[index]), 0)
    )
    t.equal(totals.at(-1), 210)
  })

  const now = Date.now()
  const rejected = {
    'from=yesterday': '/from',
    'to=never': '/to',
    [`from=${now}&to=${now - 1}`]: '/from',
    [`from=${now - HISTORY_MS - 1}&to=${now}`]: '/from'
  }
  for (const [query, path] of Object.entries(rejected)) {
    t.test(`a range is rejected: ${query.replaceAll(/\d{10,}/g, 'time')} (${path})`, async (t) => {
      for (const route of ['tracks/f-1', 'occupancy'])
        t.match((await read(`/api/positions/${route}?${query}`)).json(), {
          error: { code: 'VALIDATION_FAILED', details: [{ path }] }
        })
    })
  }

  t.test('unknown floors and transmitters are not found, and nothing is shown without signing in', async (t) => {
    for (const path of ['tracks/f-99', 'carrier/none'])
      t.equal((await read(`/api/positions/${path}`)).status, 404, path)
    for (const path of ['history', 'tracks/f-1', 'carrier/AC233F000040', 'occupancy'])
      t.equal((await read(`/api/positions/${path}`, null)).status, 401, path)
  })
})

t.test('the details of a carrier', async (t) => {
  t.test('the details have the current place', async (t) => {
    const { data } = (await read('/api/personnel/10')).json()
    const path = `/api/positions/carrier/${data.transmitterId}`
    const { photoUrl, ...carrier } = await dataOf(path)
    t.match(carrier, {
      ...{ entityType: 'employee', entityId: '10', name: data.name, role: data.jobTitle, department: data.department },
      ...{ floorId: data.currentFloorId, zoneId: data.currentZoneId, batteryLevel: Number },
      ...{ floorName: String, buildingName: String, zoneName: String }
    })
    t.equal(photoUrl, null)
  })

  t.test('the address of the photo changes with the photo', async (t) => {
    const { headers, body = '' } = form(PNG)
    const authorization = `Bearer ${await backend.signIn('admin')}`
    const upload = await backend.send('/api/personnel/11/photo', {
      method: 'POST',
      headers: { ...headers, authorization },
      body
    })
    const { photoUrl } = await dataOf(`/api/positions/carrier/${upload.json().data.transmitterId}`)
    t.match(photoUrl, /^\/api\/personnel\/11\/photo\?v=\d+$/)
    t.equal((await read(photoUrl)).status, 200)
  })
})
