import t from 'tap'
import { startTestBackend } from './demo-backend.js'

const MINUTE_MS = 60_000

const test = await startTestBackend(t)
const { publications, advance } = test
const { alerts, simulator } = test.backend
const [admin, operator, viewer] = [
  await test.signIn('admin'),
  await test.signIn('operator'),
  await test.signIn('viewer')
]

interface Alert {
  readonly id: string
  readonly kind: string
  readonly name: string
  readonly since: string
  readonly state: string
  readonly severity: string
  readonly transmitterId: string | null
  readonly receiverId: string | null
  readonly zoneId: string | null
  readonly floorId: string | null
}

const get = async (path: string) => (await test.request('GET', path, admin)).json().data
const change = (method: string, path: string, body: object) => test.request(method, path, admin, body)
const setting = (body: object) => change('PATCH', '/api/mgmt/settings/alerts', body)

/** The alerts of a kind after a check. */
const listed = async (kind: string): Promise<Alert[]> => {
  await alerts.run()
  return get(`/api/alerts?kind=${kind}&limit=1000`)
}
/** Stores that the last report of a receiver was some minutes ago. */
const reported = async (id: string, minutesAgo: number): Promise<string> => {
  const { now } = await get('/api/context/status')
  const lastSeenAt = new Date(Date.parse(now) - minutesAgo * MINUTE_MS).toISOString()
  await change('PUT', `/api/receivers/${id}`, { lastSeenAt })
  return lastSeenAt
}
const acknowledge = (ids: readonly string[], token = operator) =>
  test.request('POST', '/api/alerts/acknowledge', token, { ids })

/** A zone with at least two people, and one of them. */
const crowd = async () => {
  await simulator.tick()
  const zones: { id: string; isRestricted: boolean; occupancy: number; floorId: string }[] = await get(
    '/api/zones?limit=100&sort=occupancy&order=desc'
  )
  const zone = zones.find(({ isRestricted }) => !isRestricted)
  if (zone === undefined || zone.occupancy < 2) throw new Error('every zone is empty')
  return zone
}

t.test('a receiver', async (t) => {
  const [receiver] = await get('/api/receivers?status=online&limit=1')
  const isListed = async () => (await listed('receiver-offline')).some(({ receiverId }) => receiverId === receiver.id)

  const statusOf = async () => (await get(`/api/receivers/${receiver.id}`)).status

  t.test('a receiver is offline, with an alert, after the minutes of the settings and not before', async (t) => {
    await reported(receiver.id, 9)
    t.same([await isListed(), await statusOf()], [false, 'online'])
    const lastSeenAt = await reported(receiver.id, 11)
    t.same([await isListed(), await statusOf()], [true, 'offline'])
    const alert = (await listed('receiver-offline')).find(({ receiverId }) => receiverId === receiver.id)
    t.match(alert, { name: receiver.name, floorId: receiver.floorId, since: lastSeenAt, state: 'open' })
  })

  t.test('an alert ends when the receiver is online or deleted', async (t) => {
    await reported(receiver.id, 0)
    t.equal(await isListed(), false)
    const [other] = await listed('receiver-offline')
    await test.request('DELETE', `/api/receivers/${other?.receiverId}`, admin)
    t.notOk((await listed('receiver-offline')).some(({ id }) => id === other?.id))
  })
})

t.test('a battery', async (t) => {
  const id = 'AC233F000040'
  const found = async () => (await listed('battery-low')).find(({ transmitterId }) => transmitterId === id)
  const charge = (batteryLevel: number) => change('PATCH', `/api/transmitters/${id}`, { batteryLevel })

  t.test('a battery at or below the low threshold is an alert, a critical one at the critical threshold', async (t) => {
    await charge(21)
    t.equal(await found(), undefined)
    await charge(20)
    t.match(await found(), { severity: 'warning' })
    await charge(10)
    t.match(await found(), { severity: 'critical' })
  })

  t.test('a change of the threshold takes effect, and no threshold means no alert', async (t) => {
    await charge(21)
    await change('PUT', '/api/battery/thresholds', { low: 25 })
    t.match(await found(), { severity: 'warning' })
    t.match(await get(`/api/transmitters/${id}`), { batteryState: 'low' })
    await change('PUT', '/api/battery/thresholds', { low: null })
    t.same(await listed('battery-low'), [])
    await change('PUT', '/api/battery/thresholds', { low: 20 })
  })

  t.test('thresholds that are not in their order are rejected', async (t) => {
    const store = (body: object) => test.request('PUT', '/api/battery/thresholds', admin, body)
    for (const [body, path] of [
      [{ warning: 10 }, '/warning'],
      [{ critical: 30 }, '/low'],
      [{ critical: 50, low: null }, '/warning']
    ] as const)
      t.match((await store(body)).json().error, { code: 'VALIDATION_FAILED', details: [{ path }] })
    t.match(await get('/api/battery/thresholds'), { critical: 10, low: 20, warning: 40 })
  })

  t.test('a transmitter without a carrier is no alert', async (t) => {
    const [free] = await get('/api/transmitters/unassigned?limit=1')
    await change('PATCH', `/api/transmitters/${free.id}`, { batteryLevel: 1 })
    t.notOk((await listed('battery-low')).some(({ transmitterId }) => transmitterId === free.id))
  })
})

t.test('a zone', async (t) => {
  t.test('a zone with more people than its capacity is an alert', async (t) => {
    const { id, floorId, occupancy } = await crowd()
    const found = async () => (await listed('over-capacity')).find(({ zoneId }) => zoneId === id)
    await change('PUT', `/api/zones/${id}`, { capacity: occupancy })
    t.equal(await found(), undefined)
    await change('PUT', `/api/zones/${id}`, { capacity: occupancy - 1 })
    t.match(await found(), { floorId, occupancy, capacity: occupancy - 1, severity: 'critical', transmitterId: null })
    await setting({ zoneOverCapacity: false })
    t.equal(await found(), undefined)
    await setting({ zoneOverCapacity: true })
  })

  t.test('people in a restricted zone are alerts', async (t) => {
    const { id, floorId } = await crowd()
    const inside = async () => (await listed('restricted-zone')).filter(({ zoneId }) => zoneId === id)
    t.same(await inside(), [])
    await change('PUT', `/api/zones/${id}`, { isRestricted: true })
    const before = await inside()
    t.ok(before.length > 1)
    t.ok(before.every((alert) => alert.floorId === floorId && alert.severity === 'critical'))

    const carriers = await Promise.all(before.map(({ transmitterId }) => get(`/api/transmitters/${transmitterId}`)))
    t.notOk(carriers.some(({ entity_type }) => entity_type === 'asset'))
    await change('PUT', `/api/zones/${id}`, { isRestricted: false })
    t.same(await inside(), [])
  })
})

t.test('a silent tag is an alert until it is heard again', async (t) => {
  await simulator.tick()
  t.same(await listed('tag-silent'), [])
  advance(3 * MINUTE_MS)
  const silent = await listed('tag-silent')
  t.equal(silent.length, 270, 'the simulator stands still')
  t.ok(silent.every(({ floorId, transmitterId }) => floorId !== null && transmitterId !== null))
  await setting({ silentAfterMinutes: 5 })
  t.same(await listed('tag-silent'), [])
  await setting({ silentAfterMinutes: 2 })
  await simulator.tick()
  t.same(await listed('tag-silent'), [])
})

t.test('acknowledging', async (t) => {
  t.test('an alert is acknowledged with user and time, and the audit log has it', async (t) => {
    const [first] = await listed('receiver-offline')
    const id = first?.id ?? ''
    t.same((await acknowledge([id])).json().data, { affected: 1 })
    const [acknowledged] = await get('/api/alerts?state=acknowledged')
    t.match(acknowledged, { id, state: 'acknowledged', acknowledgedBy: 'Olive Operator', acknowledgedAt: String })
    const { data } = (await test.request('GET', '/api/audit/logs?action=alerts.update', admin)).json()
    t.match(data[0], { userName: 'Olive Operator', result: 'done' })
    t.same((await acknowledge([id], admin)).json().data, { affected: 0 }, 'the first user counts')
    t.equal((await get('/api/alerts?state=acknowledged'))[0].acknowledgedBy, 'Olive Operator')
  })

  t.test('a viewer reads alerts but cannot acknowledge them', async (t) => {
    const [first] = (await test.request('GET', '/api/alerts', viewer)).json().data
    const refused = await acknowledge([first.id], viewer)
    t.same([refused.status, refused.json().error.code], [403, 'FORBIDDEN'])
    t.equal((await test.request('GET', '/api/alerts', null)).status, 401)
  })

  t.test('a malformed body is rejected', async (t) => {
    for (const body of [{}, { ids: 'all' }, { ids: [{}] }, { ids: [], more: 1 }]) {
      const rejected = await test.request('POST', '/api/alerts/acknowledge', operator, body)
      t.same([rejected.status, rejected.json().error.code], [400, 'VALIDATION_FAILED'], JSON.stringify(body))
    }
    t.same((await acknowledge(['unknown'])).json().data, { affected: 0 })
  })
})

t.test('the list of alerts', async (t) => {
  await alerts.run()

  t.test('the list has open alerts first, then critical ones', async (t) => {
    const [first] = await get('/api/alerts?state=open&limit=1000')
    await acknowledge([first.id])
    const states = (await get('/api/alerts?limit=1000')).map(({ state }: Alert) => state)
    t.same(states, states.toSorted().toReversed())
    const severities = (await get('/api/alerts?state=open&limit=1000')).map(({ severity }: Alert) => severity)
    t.same(severities, severities.toSorted())
  })

  t.test('the summary has the number of open and acknowledged alerts of every kind', async (t) => {
    const summary: { kind: string; open: number; acknowledged: number }[] = await get('/api/alerts/summary')
    t.same(
      summary.map(({ kind }) => kind),
      ['restricted-zone', 'over-capacity', 'receiver-offline', 'tag-silent', 'battery-low']
    )
    for (const { kind, open, acknowledged } of summary) {
      t.equal((await get(`/api/alerts?kind=${kind}&state=open&limit=1000`)).length, open)
      t.equal((await get(`/api/alerts?kind=${kind}&state=acknowledged&limit=1000`)).length, acknowledged)
    }
  })
})

t.test('a change of the alerts is published once, with numbers and without names', async (t) => {
  const published = () => publications.filter(({ data }) => data.type === 'alerts')
  await alerts.run()
  const before = published().length
  await alerts.run()
  t.equal(published().length, before, 'nothing has changed')

  const [first] = await get('/api/alerts?state=open')
  await acknowledge([first.id])
  await alerts.run()
  t.equal(published().length, before + 1)
  const { channel, data } = published().at(-1) ?? {}
  t.equal(channel, 'global:all')
  t.same(data?.data, await get('/api/alerts/summary'))
})
