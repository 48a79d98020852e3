import t from 'tap'
import { newDatabase } from '../../test/helper/postgres.js'
import { startTestBackend } from './demo-backend.js'

const database = { url: await newDatabase() }
const test = await startTestBackend(t, { database })
const [admin, viewer] = [await test.signIn('admin'), await test.signIn('viewer')]
const send = (method: string, path: string, body?: object, token = admin) => test.request(method, path, token, body)
const get = async (path: string) => (await send('GET', path)).json().data

interface Carrier {
  readonly id: string
  readonly entity_type: string
  readonly entityId: string
  readonly carriedBy: string
}

t.test('a restricted zone', async (t) => {
  await test.backend.simulator.tick()
  /** Of all zones. */
  const alerts = async (): Promise<{ zoneId: string; carrier: string; transmitterId: string }[]> => {
    await test.backend.alerts.check()
    return get('/api/alerts?kind=restricted-zone&limit=1000')
  }
  const open: { id: string }[] = await get('/api/zones?limit=100&isRestricted=false')
  for (const { id } of open) await send('PUT', `/api/zones/${id}`, { isRestricted: true })
  const everywhere = await alerts()
  const hasBoth = ({ id }: { id: string }): boolean =>
    new Set(everywhere.filter(({ zoneId }) => zoneId === id).map(({ carrier }) => carrier === 'employee')).size === 2
  const zone = await get(`/api/zones/${open.find(hasBoth)?.id}`)

  const change = async (body: object) => (await send('PUT', `/api/zones/${zone.id}`, body)).json()
  /** Those who may not be in the zone. */
  const intruders = async (): Promise<Carrier[]> => {
    const inside = (await alerts()).filter(({ zoneId }) => zoneId === zone.id)
    return Promise.all(inside.map(({ transmitterId }) => get(`/api/transmitters/${transmitterId}`)))
  }
  const kinds = (carriers: readonly Carrier[]) => new Set(carriers.map(({ entity_type }) => entity_type))
  const all = await intruders()
  const employee = all.find(({ entity_type }) => entity_type === 'employee')
  const guest = all.find(({ entity_type }) => entity_type !== 'employee')
  if (employee === undefined || guest === undefined) throw new Error('the zone has no guest or no employee')

  t.test('nobody may enter a restricted zone without a list', async (t) => {
    const { occupancy, mayEnter } = await get(`/api/zones/${zone.id}`)
    t.equal(all.length, occupancy)
    t.same(mayEnter, [])
    const [alert] = await get(`/api/alerts?kind=restricted-zone&search=${encodeURIComponent(employee.carriedBy)}`)
    t.match(alert, { name: employee.carriedBy, zoneName: zone.name }, 'the alert names the person and the zone')
  })

  t.test('a category may enter', async (t) => {
    await change({ allowedCategories: ['employee'] })
    t.notOk(kinds(await intruders()).has('employee'))
    t.same((await get(`/api/zones/${zone.id}`)).mayEnter, ['All employees'])
    await change({ allowedCategories: null })
    t.equal((await intruders()).length, all.length)
  })

  t.test('people with a job title may enter', async (t) => {
    const { jobTitle } = await get(`/api/personnel/${employee.entityId}`)
    await change({ allowedJobTitles: [jobTitle] })
    const left = await intruders()
    t.notOk(left.some(({ id }) => id === employee.id))
    t.ok(left.some(({ id }) => id === guest.id))
    await change({ allowedJobTitles: [] })
  })

  t.test('single employees and guests may enter', async (t) => {
    await change({ allowedPersonIds: [`personnel/${employee.entityId}`, `visits/${guest.entityId}`] })
    const left = await intruders()
    t.equal(left.length, all.length - 2)
    t.notOk(left.some(({ id }) => id === employee.id || id === guest.id))
    t.same((await get(`/api/zones/${zone.id}`)).mayEnter.toSorted(), [employee.carriedBy, guest.carriedBy].toSorted())
  })

  t.test('the form gets the names of departments, job titles and people', async (t) => {
    const { departments, jobTitles, persons } = await get('/api/zones/access-options')
    t.ok(departments.length > 0 && jobTitles.length > 0)
    const chosen = persons.filter(({ id }: { id: string }) =>
      [`personnel/${employee.entityId}`, `visits/${guest.entityId}`].includes(id)
    )
    t.equal(chosen.length, 2)
    t.equal((await send('GET', '/api/zones/access-options', undefined, viewer)).status, 403)
  })

  t.test('lists that are not valid are rejected with their field', async (t) => {
    for (const [body, path] of [
      [{ allowedCategories: ['ghost'] }, '/allowedCategories'],
      [{ allowedDepartmentIds: 'all' }, '/allowedDepartmentIds'],
      [{ allowedPersonIds: [7] }, '/allowedPersonIds']
    ] as const)
      t.match((await change(body)).error, { code: 'VALIDATION_FAILED', details: [{ path }] })
  })

  t.test('departments in the metadata of an earlier version are still allowed after an update', async (t) => {
    const lists = { allowedDepartmentIds: null, allowedPersonIds: null, allowedJobTitles: null }
    await change({ ...lists, metadata: { departmentIds: ['3'], sign: 'A' } })
    await test.backend.close()
    const updated = await startTestBackend(t, { database, newIds: 'later' })
    const token = await updated.signIn('admin')
    const { data } = (await updated.request('GET', `/api/zones/${zone.id}`, token)).json()
    t.match(data, { allowedDepartmentIds: ['3'], metadata: { sign: 'A' } })
    t.notOk('departmentIds' in data.metadata)
  })
})
