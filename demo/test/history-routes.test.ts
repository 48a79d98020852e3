import t from 'tap'
import { browserHeaders, startGateway } from '../../test/helper/gateway.js'
import { FLOORS } from '../backend/site/layout.js'
import { form, PNG, reply, startTestBackend, type TestBackend } from './demo-backend.js'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

const backend = await startTestBackend(t)
const { simulator, alerts } = backend.backend
// As at the start of the demo. This takes more CPU time than all requests of this file.
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

t.test('the simulated site has alerts of all kinds at the start', async (t) => {
  await alerts.check()
  for (const { kind, open } of await dataOf('/api/alerts/summary')) t.ok(open > 0 && open < 30, `${open} × ${kind}`)
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

t.test('previous days', async (t) => {
  const yesterday = Date.now() - 24 * HOUR

  t.test('a fresh start has the stays of previous days, and counts of that time', async (t) => {
    for (const daysAgo of [1, 3, 6]) {
      const at = Date.now() - daysAgo * 24 * HOUR
      const people: { floorId: string; people: number }[] = await dataOf(`/api/positions/people?at=${at}`)
      const total = people.reduce((sum, one) => sum + one.people, 0)
      t.ok(total > 150 && total <= 210, `${total} people ${daysAgo} days ago`)
      const { tracks } = await dataOf(`/api/positions/tracks/f-1?from=${at}&to=${at + HOUR}`)
      const present = tracks.filter(
        ({ points }: Track) => Number(points[0]?.[0]) <= 0 && Number(points.at(-1)?.[0]) > 0
      )
      const assets = present.filter(({ transmitterId }: Track) => Number(transmitterId.slice(-3)) > 240)
      t.equal(present.length - assets.length, people.find(({ floorId }) => floorId === 'f-1')?.people)
    }
    t.same(await dataOf(`/api/positions/people?at=${Date.now() - 30 * 24 * HOUR}`), [], 'nothing is stored')
    t.equal((await backend.request('GET', '/api/positions/people?at=then', viewer)).status, 400)
  })

  t.test('the details of a carrier at a past time have its place then', async (t) => {
    const { tracks } = await dataOf(`/api/positions/tracks/f-2?from=${yesterday}&to=${yesterday + HOUR}`)
    const { transmitterId, points } = tracks.find((track: Track) => Number(track.points[0]?.[0]) <= 0)
    const carrier = await dataOf(`/api/positions/carrier/${transmitterId}?at=${yesterday}`)
    t.match(carrier, { floorId: 'f-2', floorName: 'First floor', zoneId: points[0][3], accuracy: null })
    t.ok(carrier.stays.every(({ toMs }: { toMs: number }) => toMs <= yesterday))
  })

  t.test('the tracks of one transmitter can be requested', async (t) => {
    const { tracks } = await dataOf('/api/positions/tracks/f-1')
    const [{ transmitterId }] = tracks
    const own = await dataOf(`/api/positions/tracks/f-1?transmitterId=${transmitterId}`)
    t.ok(own.tracks.length > 0)
    t.ok(own.tracks.every((track: Track) => track.transmitterId === transmitterId))
  })
})

t.test('the people of a zone', async (t) => {
  interface Person {
    readonly transmitterId: string
    readonly isHere: boolean
    readonly seconds: number
    readonly firstAt: string
    readonly lastAt: string
  }

  t.test('the people of a zone are those who are there now and those who were there', async (t) => {
    const { positions, carriers } = await dataOf('/api/context/floor/f-1')
    const people = new Set(
      carriers
        .filter((one: { entityType: string }) => one.entityType !== 'asset')
        .map((one: Track) => one.transmitterId)
    )
    const found = await dataOf(`/api/positions/zone/6?from=${Date.now() - 20 * HOUR}`)
    t.match(found, { id: '6', name: 'Canteen' })
    t.same(
      found.people
        .filter(({ isHere }: Person) => isHere)
        .map(({ transmitterId }: Person) => transmitterId)
        .toSorted(),
      positions
        .filter((one: { zoneId: string; transmitterId: string }) => one.zoneId === '6' && people.has(one.transmitterId))
        .map((one: Track) => one.transmitterId)
        .toSorted()
    )
    const left: Person[] = found.people.filter(({ isHere }: Person) => !isHere)
    t.ok(left.length > 10, `${left.length} people were there`)
    t.ok(left.every(({ seconds, firstAt, lastAt }) => seconds > 0 && firstAt < lastAt))
  })

  t.test('the people of a zone at a past time are those of the stored positions', async (t) => {
    const at = Date.now() - 24 * HOUR
    const { people } = await dataOf(`/api/positions/zone/6?from=${at - 10 * HOUR}&to=${at}`)
    const { tracks } = await dataOf(`/api/positions/tracks/f-1?from=${at}&to=${at + 1}`)
    const there = tracks.filter(
      ({ points, transmitterId }: Track) => points[0]?.[3] === '6' && Number(transmitterId.slice(-3)) <= 240
    )
    t.ok(there.length > 0)
    t.equal(people.filter(({ isHere }: Person) => isHere).length, there.length)
  })

  t.test(
    'the people of a zone are rejected for an unknown zone, a longer range and a floor without access',
    async (t) => {
      const statusOf = async (path: string) =>
        (await backend.request('GET', `/api/positions/zone/${path}`, viewer)).status
      t.equal(await statusOf(`none?minutes=10`), 404)
      t.equal(await statusOf(`6?from=${Date.now() - 26 * HOUR}`), 400)
      const closed = FLOORS.at(-1)?.regions[0]?.zoneId
      t.equal(await statusOf(`${closed}?minutes=10`), 403)
    }
  )
})

t.test('the history stays bounded', async (t) => {
  const other = await startTestBackend(t)
  const admin = await other.signIn('admin')
  await (await other.backend.simulator.backfill(2 * MINUTE)).stored
  const count = async (): Promise<number> =>
    (await other.request('GET', '/api/positions/history?limit=1', await other.signIn('admin'))).json().meta.total
  const before = await count()
  t.ok(before > 500)
  const sightings = async (path: string): Promise<number> => (await dataOf(path, other, admin)).people.length

  t.test('a second backfill adds only what is missing', async (t) => {
    await (await other.backend.simulator.backfill(2 * MINUTE)).stored
    t.ok((await count()) < 1.1 * before, `${await count()} of ${before}`)
  })

  t.test('positions of the last hour are thinned later, and everybody who was in a zone stays known', async (t) => {
    const start = Date.now()
    const zone = `/api/positions/zone/1?from=${start - 15 * MINUTE}&to=${start}`
    const [rows, people] = [await count(), await sightings(zone)]
    other.advance(70 * MINUTE)
    await other.backend.simulator.tick()
    t.ok((await count()) < rows - 200, `${await count()} of ${rows}`)
    t.ok(people > 0)
    t.equal(await sightings(zone), people)
  })

  t.test('positions end while the backend is stopped', async (t) => {
    other.advance(3 * HOUR)
    await (await other.backend.simulator.backfill(2 * MINUTE)).stored
    t.same(await dataOf(`/api/positions/people?at=${Date.now() + 2 * HOUR}`, other, admin), [])
  })

  t.test('positions are deleted after the days in the privacy settings', async (t) => {
    other.advance(6 * 24 * HOUR)
    await other.backend.retention.check()
    t.ok((await count()) > 270, 'they are kept for seven days at first')
    await other.request('PATCH', '/api/mgmt/settings/privacy', await other.signIn('admin'), { positionHistoryDays: 3 })
    await other.backend.retention.check()
    t.equal(await count(), 0)
  })

  t.test('counts are deleted after a day', async (t) => {
    await other.backend.simulator.tick()
    other.advance(25 * HOUR)
    await other.backend.simulator.tick()
    const { at } = await dataOf('/api/positions/occupancy', other, await other.signIn('viewer'))
    t.equal(at.length, 1)
  })
})

t.test('the gateway forwards the history', async (t) => {
  const gateway = await startGateway(t, { hasAllRoutes: true, env: { BACKEND_URL: backend.url } })
  const headers = browserHeaders(viewer)
  const response = reply(await gateway.send('/api/positions/heat/f-1', { headers }))
  t.same([response.status, response.json().success], [200, true])
})
