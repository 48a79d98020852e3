import t from 'tap'
import { newDatabase } from '../../test/helper/postgres.js'
import { startTestBackend } from './demo-backend.js'

const backend = await startTestBackend(t)
const [admin, operator, viewer] = await Promise.all([
  backend.signIn('admin'),
  backend.signIn('operator'),
  backend.signIn('viewer')
])

const HOUR_MS = 60 * 60_000
/** A time after now, as text. */
const after = (ms: number): string => new Date(Date.now() + ms).toISOString()

const request = (method: string, path: string, body?: unknown, token = operator) =>
  backend.request(method, path, token, body)
const dataOf = async (path: string) => (await request('GET', path)).json().data
const create = async (fields: Record<string, unknown> = {}) => {
  const body = { name: 'Vera Visitor', expectedFrom: after(-HOUR_MS), expectedTo: after(HOUR_MS), ...fields }
  return (await request('POST', '/api/visits', body)).json().data
}
const checkIn = (id: string, transmitterId: string) => request('POST', `/api/visits/${id}/check-in`, { transmitterId })
const checkOut = (id: string) => request('POST', `/api/visits/${id}/check-out`)
const freeTransmitter = async (): Promise<string> => (await dataOf('/api/transmitters/unassigned?limit=1'))[0].id
const errorOf = ({ status, json }: Awaited<ReturnType<typeof request>>) => [status, json().error?.code]

t.test('the visitors and contractors of the initial data are visits on site', async (t) => {
  const visitors = (await request('GET', '/api/visits?kind=visitor&status=on-site&limit=100')).json()
  t.equal(visitors.meta.total, 30)
  t.ok(
    visitors.data.every(({ host, company, transmitterId }: Record<string, unknown>) => host && company && transmitterId)
  )
  t.equal((await request('GET', '/api/visits?kind=contractor&status=on-site')).json().meta.total, 20)
  t.match(await dataOf('/api/dashboard/summary'), { visitorsOnSite: 30, contractorsOnSite: 20, guestsOnSite: 50 })
  for (const status of ['expected', 'overdue', 'left'])
    t.ok((await request('GET', `/api/visits?status=${status}`)).json().meta.total > 0, status)
})

t.test('check-in gives a transmitter, which check-out returns', async (t) => {
  const visit = await create({ company: 'Corvus Audit', hostId: '5', kind: 'contractor' })
  t.match(visit, { status: 'expected', isOnSite: false, transmitterId: null, version: 1 })
  const transmitterId = await freeTransmitter()
  const { name: host } = await dataOf('/api/personnel/5')

  t.match((await checkIn(visit.id, transmitterId)).json().data, { status: 'on-site', transmitterId, host })
  t.match(await dataOf(`/api/transmitters/${transmitterId}`), {
    carriedBy: 'Vera Visitor',
    entity_type: 'contractor',
    entityId: visit.id,
    status: 'assigned'
  })
  const { people } = await dataOf('/api/emergency/muster')
  const inMuster = people.find((person: { transmitterId: string }) => person.transmitterId === transmitterId)
  t.match(inMuster, { name: 'Vera Visitor', kind: 'contractor', company: 'Corvus Audit', host })
  t.match(await dataOf(`/api/positions/carrier/${transmitterId}`), { company: 'Corvus Audit', host })

  t.match((await checkOut(visit.id)).json().data, { status: 'left', isOnSite: false, transmitterId: null })
  t.match(await dataOf(`/api/transmitters/${transmitterId}`), {
    carriedBy: null,
    entity_type: null,
    status: 'available'
  })

  const subjects = (await request('GET', '/api/audit/logs?search=vera&limit=5', undefined, admin))
    .json()
    .data.map(({ subject }: { subject: string }) => subject)
  t.ok(subjects.some((subject: string) => /^visit Vera Visitor checked in with Badge \d+$/.test(subject)))
  t.ok(subjects.some((subject: string) => /^visit Vera Visitor checked out, Badge \d+ returned$/.test(subject)))
})

t.test('two visitors who check in with the same transmitter at once: one gets it', async (t) => {
  const [one, other] = [await create(), await create()]
  const transmitterId = await freeTransmitter()
  const responses = await Promise.all([checkIn(one.id, transmitterId), checkIn(other.id, transmitterId)])
  t.same(responses.map(({ status }) => status).toSorted(), [200, 409])
  const rejected = responses.find(({ status }) => status === 409)
  t.match(rejected?.json().error, {
    code: 'TRANSMITTER_TAKEN',
    message: 'The transmitter has been assigned meanwhile. Choose another one.',
    details: [{ path: '/transmitterId' }]
  })
  const states = [await dataOf(`/api/visits/${one.id}`), await dataOf(`/api/visits/${other.id}`)]
  t.same(states.map(({ status }) => status).toSorted(), ['expected', 'on-site'])
})

t.test('the same visitor who is checked in twice at once gets one transmitter', async (t) => {
  const { id } = await create()
  const free = await dataOf('/api/transmitters/unassigned?limit=2')
  const responses = await Promise.all(free.map((one: { id: string }) => checkIn(id, one.id)))
  t.same(responses.map(({ status }) => status).toSorted(), [200, 409])
  const carried = await dataOf(`/api/transmitters?entityId=${id}`)
  t.equal(carried.length, 1)
})

t.test('a visit rejects what does not fit its state, and stays as it is', async (t) => {
  const visit = await create()
  t.same(errorOf(await checkOut(visit.id)), [409, 'NOT_CHECKED_IN'])
  t.same(errorOf(await checkIn(visit.id, 'no-such-transmitter')), [409, 'UNKNOWN_REFERENCE'])
  const transmitterId = await freeTransmitter()
  await request('PATCH', `/api/transmitters/${transmitterId}`, { isActive: false })
  t.same(errorOf(await checkIn(visit.id, transmitterId)), [409, 'TRANSMITTER_NOT_IN_USE'])
  await request('PATCH', `/api/transmitters/${transmitterId}`, { isActive: true })

  await checkIn(visit.id, transmitterId)
  t.same(errorOf(await checkIn(visit.id, await freeTransmitter())), [409, 'ALREADY_CHECKED_IN'])
  t.same(errorOf(await request('DELETE', `/api/visits/${visit.id}`)), [409, 'VISIT_ACTIVE'])
  await checkOut(visit.id)

  // Somebody else carries the transmitter now.
  const next = await create()
  await checkIn(next.id, transmitterId)
  t.same(errorOf(await checkOut(visit.id)), [409, 'VISIT_ENDED'])
  t.same(errorOf(await checkIn(visit.id, await freeTransmitter())), [409, 'VISIT_ENDED'])
  t.equal((await request('DELETE', `/api/visits/${visit.id}`)).status, 200)
  t.match(await dataOf(`/api/visits/${next.id}`), { transmitterId, status: 'on-site' })
  t.equal((await checkOut(visit.id)).status, 404)

  const expired = await create({ expectedTo: after(-1000) })
  t.match(expired, { status: 'missed' })
  t.same(errorOf(await checkIn(expired.id, await freeTransmitter())), [409, 'VISIT_EXPIRED'])
})

t.test('the times of a visit are checked', async (t) => {
  const cases: readonly (readonly [string, Record<string, unknown>, string])[] = [
    ['an end before the beginning', { expectedTo: after(-2 * HOUR_MS) }, '/expectedTo'],
    ['a day that does not exist', { expectedFrom: '2026-02-31T10:00:00Z' }, '/expectedFrom'],
    ['a time without an offset', { expectedTo: '2026-02-01T10:00' }, '/expectedTo'],
    ['no time', { expectedFrom: undefined }, '/expectedFrom'],
    ['an empty name', { name: '' }, '/name'],
    ['another kind', { kind: 'employee' }, '/kind'],
    ['a time of the check-in', { checkedInAt: after(0) }, '/checkedInAt']
  ]
  for (const [title, fields, path] of cases) {
    const body = { name: 'Vera', expectedFrom: after(-HOUR_MS), expectedTo: after(HOUR_MS), ...fields }
    const response = await request('POST', '/api/visits', body)
    t.equal(response.status, 400, title)
    t.match(response.json().error.details, [{ path }], title)
  }
  const { id } = await create()
  const sooner = await request('PATCH', `/api/visits/${id}`, { expectedTo: after(-2 * HOUR_MS) })
  t.match(sooner.json().error.details, [{ path: '/expectedTo' }], 'also of a change')
  t.same(errorOf(await request('POST', '/api/visits', { ...(await create()), id: undefined })), [
    400,
    'VALIDATION_FAILED'
  ])
  t.same(
    errorOf(await request('PATCH', `/api/visits/${id}`, { hostId: 'nobody' })),
    [409, 'UNKNOWN_REFERENCE'],
    'the host must exist'
  )
})

t.test('a visitor who becomes a contractor keeps the transmitter', async (t) => {
  const { id, version } = await create()
  const transmitterId = await freeTransmitter()
  await checkIn(id, transmitterId)
  t.same(
    errorOf(await request('PATCH', `/api/visits/${id}?version=${version}`, { notes: 'x' })),
    [409, 'RECORD_CHANGED'],
    'the check-in is a change'
  )
  await request('PATCH', `/api/visits/${id}`, { kind: 'contractor' })
  t.match(await dataOf(`/api/visits/${id}`), { kind: 'contractor', transmitterId })
  t.match(await dataOf(`/api/transmitters/${transmitterId}`), { entity_type: 'contractor', carriedBy: 'Vera Visitor' })
})

t.test('a visitor whose transmitter was given to somebody else gets another one', async (t) => {
  const { id } = await create()
  const transmitterId = await freeTransmitter()
  const { checkedInAt } = (await checkIn(id, transmitterId)).json().data
  await request('POST', '/api/transmitters/assign', { transmitterId, entityId: null })
  t.match(await dataOf(`/api/visits/${id}`), { status: 'on-site', transmitterId: null })
  t.match((await checkIn(id, transmitterId)).json().data, { transmitterId, checkedInAt })
})

t.test('a transmitter that is assigned to a visitor without a visit gets one', async (t) => {
  const transmitterId = await freeTransmitter()
  const names = { firstName: 'Noor', lastName: 'Guest', company: 'Delta Instruments' }
  await request('PATCH', `/api/transmitters/${transmitterId}`, { entity_type: 'visitor', ...names })
  const [visit] = await dataOf('/api/visits?search=noor')
  t.match(visit, {
    name: 'Noor Guest',
    company: 'Delta Instruments',
    status: 'on-site',
    transmitterId,
    expectedTo: null
  })
  const { id } = await create()
  const toAbsent = { transmitterId: await freeTransmitter(), entity_type: 'visitor', entityId: id }
  t.same(errorOf(await request('POST', '/api/transmitters/assign', toAbsent)), [409, 'VISIT_NOT_CHECKED_IN'])
})

t.test('a visitor on site after the expected end raises an alert until the check-out', async (t) => {
  const overdue = async () =>
    (await dataOf('/api/alerts?kind=visit-overdue&search=olaf')) as readonly Record<string, unknown>[]
  const visit = await create({ name: 'Olaf Overdue', company: 'Corvus Audit', hostId: '5' })
  await checkIn(visit.id, await freeTransmitter())
  await backend.backend.alerts.check()
  t.same(await overdue(), [])
  const expectedTo = after(-60_000)
  await request('PATCH', `/api/visits/${visit.id}`, { expectedTo })
  t.match(await dataOf(`/api/visits/${visit.id}`), { status: 'overdue', isOnSite: true })
  await backend.backend.alerts.check()
  t.match(await overdue(), [{ name: 'Olaf Overdue', carrier: 'visitor', company: 'Corvus Audit', since: expectedTo }])

  await request('PATCH', '/api/mgmt/settings/alerts', { visitOverdue: false }, admin)
  await backend.backend.alerts.check()
  t.same(await overdue(), [], 'the setting switches it off')
  await request('PATCH', '/api/mgmt/settings/alerts', { visitOverdue: true }, admin)
  await backend.backend.alerts.check()
  t.equal((await overdue()).length, 1)
  await checkOut(visit.id)
  await backend.backend.alerts.check()
  t.same(await overdue(), [])
})

t.test('the alert of a visitor does not continue for the next one with the same transmitter', async (t) => {
  const transmitterId = await freeTransmitter()
  const overdue = async (name: string) => {
    const { id } = await create({ name })
    await checkIn(id, transmitterId)
    await request('PATCH', `/api/visits/${id}`, { expectedTo: after(-60_000) })
    await backend.backend.alerts.check()
    const [alert] = await dataOf(`/api/alerts?kind=visit-overdue&search=${name}`)
    return { id, alert }
  }
  const first = await overdue('Firsten')
  await request('POST', '/api/alerts/acknowledge', { ids: [first.alert.id] })
  await checkOut(first.id)
  const second = await overdue('Seconda')
  t.match(second.alert, { state: 'open', acknowledgedBy: null })
})

t.test('visits are found by name, company and host', async (t) => {
  const { name: host } = await dataOf('/api/personnel/9')
  await create({ name: 'Quentin Quill', company: 'Quarry Works', hostId: '9' })
  for (const search of ['quentin', 'QUARRY', host])
    t.ok(
      (await dataOf(`/api/visits?search=${encodeURIComponent(search)}`)).some(
        ({ name }: { name: string }) => name === 'Quentin Quill'
      ),
      search
    )
})

t.test('the deletion of a host keeps the visit', async (t) => {
  const { id: hostId } = (await request('POST', '/api/personnel', { firstName: 'Hans', lastName: 'Host' })).json().data
  const { id } = await create({ hostId })
  t.match(await dataOf(`/api/personnel/${hostId}/deletion`), {
    consequences: ['1 visit will no longer be linked to it.']
  })
  await request('DELETE', `/api/personnel/${hostId}`)
  t.match(await dataOf(`/api/visits/${id}`), { host: null, hostId: null })
})

t.test('a viewer sees visits and changes none', async (t) => {
  const { id } = await create()
  t.equal((await request('GET', '/api/visits', undefined, viewer)).status, 200)
  for (const [method, path, body] of [
    ['POST', '/api/visits', { name: 'X', expectedFrom: after(0), expectedTo: after(1000) }],
    ['PATCH', `/api/visits/${id}`, { notes: 'x' }],
    ['DELETE', `/api/visits/${id}`, undefined],
    ['POST', `/api/visits/${id}/check-in`, { transmitterId: 'AC233F000001' }],
    ['POST', `/api/visits/${id}/check-out`, undefined]
  ] as const)
    t.equal((await request(method, path, body, viewer)).status, 403, path)
})

t.test('guests of a database without visits become visits at the start', async (t) => {
  const url = await newDatabase()
  const old = await startTestBackend(t, { database: { url } })
  const pg = await import('pg')
  const pool = new pg.default.Pool({ connectionString: url })
  t.teardown(() => pool.end())
  await pool.query(`UPDATE transmitters t SET entity_id = NULL, first_name = 'Old', last_name = 'Guest ' || right(id, 2),
    company = 'Corvus Audit' WHERE entity_type IN ('visitor', 'contractor')`)
  await pool.query('DROP TABLE visits CASCADE')
  await old.backend.close()

  const upgraded = await startTestBackend(t, { database: { url }, newIds: 'later' })
  const token = await upgraded.signIn('admin')
  const { data, meta } = (await upgraded.request('GET', '/api/visits?status=on-site&search=corvus', token)).json()
  t.equal(meta.total, 50)
  t.match(data[0], { name: /^Old Guest \d\d$/, company: 'Corvus Audit', transmitterId: /^AC/, expectedTo: null })
})
