import t from 'tap'
import { FLOORS } from '../../demo/backend/site/layout.js'
import { browserHeaders, startGateway } from '../helper/gateway.js'
import { form, PNG, reply, startTestBackend, type TestBackend } from './demo-backend.js'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

const backend = await startTestBackend(t)
const { simulator } = backend.backend
await (await simulator.backfill()).stored
await simulator.tick()
const viewer = await backend.signIn('viewer')
const dataOf = async (path: string, { request }: TestBackend = backend, token = viewer) =>
  (await request('GET', path, token)).json().data

interface Track {
  readonly transmitterId: string
  readonly points: readonly (readonly [number, number, number, string | null])[]
}

t.test('a fresh start has the positions of the last hour', async (t) => {
  const { from, to, tracks } = await dataOf('/api/positions/tracks/f-1')
  t.equal(Date.parse(to) - Date.parse(from), HOUR)
  const times: number[] = tracks.flatMap(({ points }: Track) => points.map(([ms]) => ms))
  t.ok(Math.min(...times) < MINUTE && Math.max(...times) > HOUR - MINUTE)
  for (let minute = 1; minute < 59; minute += 1) {
    const present = tracks.filter(
      ({ points }: Track) => (points[0]?.[0] ?? 0) <= minute * MINUTE && (points.at(-1)?.[0] ?? 0) >= minute * MINUTE
    )
    t.ok(present.length > 10, `${present.length} carriers in minute ${minute}`)
  }
})

t.test('the tracks of a floor', async (t) => {
  t.test('the tracks of a floor end at the current positions', async (t) => {
    await simulator.tick()
    const { tracks } = await dataOf('/api/positions/tracks/f-2')
    const ends = new Map(tracks.map(({ transmitterId, points }: Track) => [transmitterId, points.at(-1)?.slice(1, 3)]))
    const { positions } = await dataOf('/api/context/floor/f-2')
    t.ok(positions.length > 10)
    for (const { transmitterId, position } of positions)
      t.same(ends.get(transmitterId), [position.x, position.y], transmitterId)
  })

  t.test('the tracks of a floor are limited to the requested range', async (t) => {
    const to = Date.now() - 10 * MINUTE
    const { tracks } = await dataOf(`/api/positions/tracks/f-1?from=${to - 5 * MINUTE}&to=${to}`)
    const times: number[] = tracks.flatMap(({ points }: Track) => points.map(([ms]) => ms))
    // One point before the start, to interpolate from.
    t.ok(times.length > 50 && Math.min(...times) >= -75_000 && Math.max(...times) <= 5 * MINUTE)
  })

  t.test('the tracks of a floor can be requested for the last minutes', async (t) => {
    const { from, to, tracks } = await dataOf('/api/positions/tracks/f-1?minutes=10')
    t.equal(Date.parse(to) - Date.parse(from), 10 * MINUTE)
    t.ok(tracks.length > 10)
  })

  t.test('the tracks of a floor do not leave it', async (t) => {
    const floor = FLOORS.find(({ floorId }) => floorId === 'f-5')
    const { tracks } = await dataOf('/api/positions/tracks/f-5')
    const outside = tracks
      .flatMap(({ points }: Track) => points)
      .filter(([, x, y]: readonly number[]) => Number(x) > (floor?.width ?? 0) || Number(y) > (floor?.height ?? 0))
    t.same(outside, [])
  })
})

t.test('the heat map of a floor has the time that people spent in each square metre', async (t) => {
  const { columns, rows, cell, seconds } = await dataOf('/api/positions/heat/f-1')
  t.same([columns, rows, cell, seconds.length], [74, 25, 1, 74 * 25])
  const total: number = seconds.reduce((sum: number, one: number) => sum + one)
  const personnel: number = (await dataOf('/api/dashboard/floors/f-1')).personnel
  t.ok(total > personnel * 600, `${total} person-seconds`)
  t.ok(total < 210 * 3600, 'assets are not counted')
})

t.test('a range', async (t) => {
  const now = Date.now()
  const rejected = {
    'from=yesterday': '/from',
    'to=never': '/to',
    [`from=${now}&to=${now - 1}`]: '/from',
    [`from=${now - HOUR - 1}&to=${now}`]: '/from',
    'from=0': '/from',
    'minutes=0': '/minutes',
    'minutes=61': '/minutes',
    'minutes=1.5': '/minutes',
    'minutes=ten': '/minutes'
  }
  for (const [query, path] of Object.entries(rejected)) {
    t.test(`a range is rejected: ${query.replaceAll(/\d{10,}/g, 'time')} (${path})`, async (t) => {
      for (const route of ['tracks/f-1', 'heat/f-1']) {
        const response = await backend.request('GET', `/api/positions/${route}?${query}`, viewer)
        t.match(response.json(), { success: false, error: { code: 'VALIDATION_FAILED', details: [{ path }] } })
      }
    })
  }

  t.test('a range of occupancy is at most one day', async (t) => {
    const { status } = await backend.request('GET', `/api/positions/occupancy?from=${now - 25 * HOUR}`, viewer)
    t.equal(status, 400)
  })

  t.test('an unknown floor or transmitter is not found', async (t) => {
    for (const path of ['tracks/f-99', 'heat/f-99', 'carrier/none'])
      t.equal((await backend.request('GET', `/api/positions/${path}`, viewer)).status, 404, path)
  })

  t.test('the history is not available without signing in', async (t) => {
    for (const path of ['history', 'tracks/f-1', 'heat/f-1', 'carrier/AC233F000040', 'occupancy'])
      t.equal((await backend.request('GET', `/api/positions/${path}`, null)).status, 401, path)
  })
})

t.test('the details of a carrier', async (t) => {
  t.test('the details of an employee have the current zone, its start and the zones of the last hour', async (t) => {
    const { data } = (await backend.request('GET', '/api/personnel/10', viewer)).json()
    const carrier = await dataOf(`/api/positions/carrier/${data.transmitterId}`)
    t.match(carrier, {
      entityType: 'employee',
      entityId: '10',
      name: data.name,
      role: data.jobTitle,
      department: data.department,
      floorId: data.currentFloorId,
      zoneId: data.currentZoneId,
      photoUrl: null,
      batteryLevel: Number,
      floorName: String,
      buildingName: String,
      zoneName: String
    })
    t.ok(carrier.stays.length > 5, `${carrier.stays.length} stays`)
    t.equal(carrier.stays[0].zoneId, carrier.zoneId)
    t.equal(carrier.since, carrier.stays[0].fromMs)
  })

  t.test('the details of an employee have the address of the photo, which changes with the photo', async (t) => {
    const admin = await backend.signIn('admin')
    const { headers, body = '' } = form(PNG)
    const message = { method: 'POST', headers: { ...headers, authorization: `Bearer ${admin}` }, body }
    const { transmitterId } = (await backend.send('/api/personnel/11/photo', message)).json().data
    const { photoUrl } = await dataOf(`/api/positions/carrier/${transmitterId}`)
    t.match(photoUrl, /^\/api\/personnel\/11\/photo\?v=\d+$/)
    t.equal((await backend.request('GET', photoUrl, viewer)).status, 200)
  })

  t.test('the details of an asset that never moved have no start of the stay', async (t) => {
    const { data } = (await backend.request('GET', '/api/assets/7', viewer)).json()
    const carrier = await dataOf(`/api/positions/carrier/${data.transmitterId}`)
    t.match(carrier, { entityType: 'asset', name: data.name, role: data.category, since: null })
    t.equal(carrier.stays.length, 1)
  })
})

t.test('the occupancy of a fresh start has counts of every floor for the last day', async (t) => {
  const { at, floors } = await dataOf('/api/positions/occupancy')
  t.ok(at.length >= 288 && at.length <= 290, `${at.length} counts`)
  t.ok(at.every((ms: number) => ms % (5 * MINUTE) === 0))
  t.same(
    floors.map(({ floorId }: { floorId: string }) => floorId),
    FLOORS.map(({ floorId }) => floorId)
  )
  const totals: number[] = at.map((_: number, index: number) =>
    floors.reduce((sum: number, { people }: { people: number[] }) => sum + (people[index] ?? 0), 0)
  )
  t.ok(Math.max(...totals) <= 250 && Math.min(...totals) > 0, `${Math.min(...totals)} to ${Math.max(...totals)} people`)
  t.ok(Math.min(...totals) < Math.max(...totals) / 4, 'fewer at night')
  t.equal(totals.at(-1), 210, 'the last one is the current count')
  // Silent transmitters are missing in the past.
  const lastHour = totals.slice(-12)
  t.ok(Math.min(...lastHour) > 195 && Math.max(...lastHour) <= 210, `the last hour was simulated: ${lastHour.join()}`)
})

t.test('the history stays bounded', async (t) => {
  const other = await startTestBackend(t)
  const admin = await other.signIn('admin')
  await (await other.backend.simulator.backfill(2 * MINUTE)).stored
  const count = async (): Promise<number> =>
    (await other.request('GET', '/api/positions/history?limit=1', admin)).json().meta.total
  const before = await count()
  t.ok(before > 500)

  t.test('a second backfill adds only what is missing', async (t) => {
    await (await other.backend.simulator.backfill(2 * MINUTE)).stored
    t.ok((await count()) < 1.5 * before, `${await count()} of ${before}`)
  })

  t.test('positions are deleted after an hour, and counts after a day', async (t) => {
    other.advance(70 * MINUTE)
    await other.backend.simulator.tick()
    t.ok((await count()) < 2 * 270, 'only the last step remains')
    other.advance(25 * HOUR)
    await other.backend.simulator.tick()
    const { at } = await dataOf('/api/positions/occupancy', other, await other.signIn('viewer'))
    t.equal(at.length, 1)
  })
})

t.test('the gateway forwards the history', async (t) => {
  const gateway = await startGateway(t, { env: { BACKEND_URL: backend.url } })
  const headers = browserHeaders(viewer)
  const response = reply(await gateway.send('/api/positions/heat/f-1', { headers }))
  t.same([response.status, response.json().success], [200, true])
})
