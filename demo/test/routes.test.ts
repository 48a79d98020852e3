import t, { type Test } from 'tap'
import { routeTables } from '../../src/gateway/routes/index.js'
import type { RouteDeclaration } from '../../src/gateway/routes/tables/declare.js'
import { browserHeaders, startGateway } from '../../test/helper/gateway.js'
import type { Message } from '../../test/helper/http.js'
import { form, PNG, type Reply, reply, startTestBackend } from './demo-backend.js'

// Calls every declared route through the gateway, with the example bodies of the schemas.

const GATEWAYS_OWN = /^\/api\/(health|auth\/csrf-token|auth\/providers)/

/** The value of the path parameter, by the start of the path. */
const IDS: readonly (readonly [string, string])[] = [
  ['/api/users', 'demo-viewer'],
  ['/api/floors', 'f-1'],
  ['/api/context/floor', 'f-1'],
  ['/api/dashboard/floors', 'f-1'],
  ['/api/transmitters', 'AC233F000040'],
  ['/api/battery', 'AC233F000040'],
  ['/api/weather', 'severe'],
  ['/api/', '1']
]

/** Error codes of routes whose example refers to something that does not exist. */
const EXPECTED_ERRORS: Readonly<Record<string, string>> = {
  'POST /api/auth/login': 'INVALID_CREDENTIALS',
  'POST /api/auth/backend-login': 'INVALID_CREDENTIALS',
  'GET /api/phone-beacon/:token': 'NOT_FOUND',
  'POST /api/phone-beacon/complete-enrollment': 'NOT_FOUND',
  // The demo does not import.
  'POST /api/personnel/import': 'NOT_FOUND',
  'PUT /api/mgmt/beacons': 'IDS_REQUIRED',
  'DELETE /api/mgmt/beacons': 'IDS_REQUIRED',
  'PUT /api/mgmt/departments': 'IDS_REQUIRED',
  'DELETE /api/mgmt/departments': 'IDS_REQUIRED',
  'PUT /api/mgmt/zone-types': 'IDS_REQUIRED',
  'DELETE /api/mgmt/zone-types': 'IDS_REQUIRED'
}

const MAY_BE_EMPTY: ReadonlySet<string> = new Set([
  'GET /api/weather/alerts',
  // Positions of the last minutes: one second was simulated.
  'GET /api/phone-beacon/irk-records'
])

const keyOf = ({ method, path }: RouteDeclaration): string => `${method} ${path}`
const pathOf = ({ path }: RouteDeclaration): string =>
  path
    .replace('/emergency/:id', `/emergency/${raised}`)
    .replace(/:\w+/, IDS.find(([prefix]) => path.startsWith(prefix))?.[1] ?? '')

const rows = routeTables.flatMap((table) => table.rows).filter(({ path }) => !GATEWAYS_OWN.test(path))
const isRemoval = ({ method, path }: RouteDeclaration): boolean => method === 'DELETE' || path.endsWith('batch-delete')
const reads = rows.filter(({ method }) => method === 'GET')
const changes = rows.filter((row) => row.method !== 'GET' && !isRemoval(row))
// Children are deleted before their parents.
const removals = rows.filter(isRemoval).toReversed()

const backend = await startTestBackend(t)
await backend.backend.simulator.tick()
const raised: string = (
  await backend.request('POST', '/api/emergency/trigger', await backend.signIn('admin'), { type: 'other' })
).json().data.id
const gateway = await startGateway(t, {
  hasAllRoutes: true,
  env: { BACKEND_URL: backend.url, TRUST_PROXY: 'loopback' }
})
const signedIn = browserHeaders(await backend.signIn('admin'))

let clients = 0

const call = async (row: RouteDeclaration): Promise<Reply> => {
  clients += 1
  // Each request has its own client address, because of the login limit.
  const headers = { ...signedIn, 'x-forwarded-for': `10.0.0.${clients}` }
  const message: Message =
    row.kind === 'upload'
      ? form(PNG)
      : row.body === null
        ? {}
        : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(row.body.examples[0]) }
  return reply(
    await gateway.send(pathOf(row), { method: row.method, ...message, headers: { ...headers, ...message.headers } })
  )
}

const isRejected = (t: Test, row: RouteDeclaration, response: Reply): boolean => {
  const code = EXPECTED_ERRORS[keyOf(row)]
  if (code !== undefined) t.equal(response.json().error.code, code)
  return code !== undefined
}

t.test('every read', async (t) => {
  for (const row of reads) {
    t.test(`${keyOf(row)} returns data`, async (t) => {
      const response = await call(row)
      if (isRejected(t, row, response)) return

      t.equal(response.status, 200)
      if (row.kind === 'stream') {
        t.ok(response.body.length > 100)
        return
      }
      const { success, data } = response.json()
      t.equal(success, true)
      if (!MAY_BE_EMPTY.has(keyOf(row))) t.ok(Array.isArray(data) ? data.length > 0 : Object.keys(data).length > 0)
    })
  }
})

for (const [kind, group] of Object.entries({ change: changes, removal: removals })) {
  t.test(`every ${kind}`, async (t) => {
    for (const row of group) {
      t.test(`${keyOf(row)} accepts the example of its schema`, async (t) => {
        const response = await call(row)
        if (isRejected(t, row, response)) return

        t.match(String(response.status), /^20[01]$/, response.body)
        t.equal(response.json().success, true)
      })
    }
  })
}

t.test('an open body keeps fields that are not in the schema', async (t) => {
  const token = await backend.signIn('admin')
  const created = await backend.request('POST', '/api/zones', token, { name: 'Roof', floorId: 'f-5', shade: 'none' })
  const { id } = created.json().data

  t.equal((await backend.request('GET', `/api/zones/${id}`, token)).json().data.shade, 'none')
  await backend.request('PUT', `/api/zones/${id}`, token, { slope: 3 })
  t.match((await backend.request('GET', `/api/zones/${id}`, token)).json().data, {
    name: 'Roof',
    shade: 'none',
    slope: 3
  })
})

t.test('a person needs a name, a first name or a last name', async (t) => {
  const token = await backend.signIn('operator')
  const create = (body: object) => backend.request('POST', '/api/personnel', token, body)
  const { error } = (await create({ name: '', firstName: null, email: 'ann@example.com' })).json()
  t.match(error, { code: 'VALIDATION_FAILED', details: [{ path: '/firstName' }] })
  t.equal((await create({ lastName: 'Example' })).json().data.name, 'Example')
})

t.test('a new first name keeps the stored last name', async (t) => {
  const token = await backend.signIn('operator')
  const { id } = (await backend.request('POST', '/api/personnel', token, { firstName: 'Ann', lastName: 'Lee' })).json()
    .data
  const change = async (body: object) => (await backend.request('PUT', `/api/personnel/${id}`, token, body)).json()
  t.equal((await change({ firstName: 'Anna' })).data.name, 'Anna Lee')
  t.equal((await change({ jobTitle: 'Librarian' })).data.name, 'Anna Lee')
  t.equal((await change({ lastName: null })).data.name, 'Anna')
  t.match((await change({ firstName: '' })).error, { code: 'VALIDATION_FAILED', details: [{ path: '/firstName' }] })
})

t.test('two users edit one record', async (t) => {
  const [admin, operator] = [await backend.signIn('admin'), await backend.signIn('operator')]
  const { data: zone } = (await backend.request('POST', '/api/zones', admin, { name: 'Shared', floorId: 'f-5' })).json()
  const path = `/api/zones/${zone.id}`
  const { version } = zone
  const first = await backend.request('PUT', `${path}?version=${version}`, admin, { capacity: 5 })
  t.match(first.json().data, { capacity: 5, version: version + 1 })

  // Through the gateway, as the page sends it.
  const headers = { ...browserHeaders(operator), 'content-type': 'application/json' }
  const send = async (query: string, body: object) =>
    reply(await gateway.send(`${path}${query}`, { method: 'PUT', headers, body: JSON.stringify(body) }))
  const second = await send(`?version=${version}`, { capacity: 9, name: 'Mine' })
  t.equal(second.status, 409)
  const message = 'Another user has changed the zone meanwhile. Reload it and try again.'
  t.match(second.json().error, { code: 'RECORD_CHANGED', message })
  t.match((await send(`?version=${version + 1}`, { capacity: 9 })).json().data, { capacity: 9, version: version + 2 })
  t.equal((await send('', { capacity: 3 })).status, 200, 'a program that sends no version is not rejected')
  t.match((await send('?version=x', { capacity: 3 })).json().error, { code: 'VALIDATION_FAILED' })
})

t.test('two users edit one group of settings', async (t) => {
  const token = await backend.signIn('admin')
  const send = async (method: string, path: string, body?: object) =>
    (await backend.request(method, path, token, body)).json()
  const groups: readonly (readonly [method: string, path: string, body: object])[] = [
    ['PATCH', '/api/mgmt/settings/general', { organizationName: 'North' }],
    ['PATCH', '/api/mgmt/settings/alerts', { silentAfterMinutes: 6 }],
    ['PUT', '/api/battery/thresholds', { warning: 41 }]
  ]
  for (const [method, path, body] of groups) {
    const { version, ...before } = (await send('GET', path)).data
    const { data } = await send(method, `${path}?version=${version}`, body)
    t.match(data, { ...body, version: version + 1 }, path)
    const { error } = await send(method, `${path}?version=${version}`, body)
    t.match(error, { code: 'RECORD_CHANGED', message: /changed the settings meanwhile/ })
    const [field = ''] = Object.keys(body)
    await send(method, path, { [field]: before[field] })
  }

  const path = '/api/emergency/instructions'
  const [{ id, version, instructions }] = (await send('GET', path)).data
  const changed = await send('PATCH', `${path}/${id}?version=${version}`, { fire: 'Walk out.' })
  t.match(changed.data, { version: version + 1, instructions: { fire: 'Walk out.' } })
  const { error } = await send('PATCH', `${path}/${id}?version=${version}`, { fire: 'Run out.' })
  t.match(error, { code: 'RECORD_CHANGED' })
  await send('PATCH', `${path}/${id}`, { fire: instructions.fire })
})

t.test('a transmitter that somebody else carries is not taken away by a form', async (t) => {
  const token = await backend.signIn('operator')
  const { data } = (await backend.request('GET', '/api/transmitters/unassigned?limit=1', token)).json()
  const transmitterId = data[0].id
  const create = (path: string, name: string) => backend.request('POST', path, token, { name, transmitterId })
  const [first, second] = await Promise.all([create('/api/personnel', 'One'), create('/api/assets', 'Two')])
  const [given, refused] = first.status === 201 ? [first, second] : [second, first]
  t.same([given.status, refused.status], [201, 409])
  t.match(refused.json().error, { code: 'TRANSMITTER_TAKEN', details: [{ path: '/transmitterId' }] })
  const path = given === first ? '/api/personnel' : '/api/assets'
  const kept = await backend.request('PUT', `${path}/${given.json().data.id}`, token, { transmitterId })
  t.equal(kept.json().data.transmitterId, transmitterId, 'its carrier may be saved again')
})

t.test('a person with a new transmitter gives the previous one back', async (t) => {
  const token = await backend.signIn('admin')
  const { data: person } = (await backend.request('POST', '/api/personnel', token, { name: 'Three' })).json()
  const carrier = { entity_type: 'employee', entityId: person.id }
  const create = (name: string) => backend.request('POST', '/api/transmitters', token, { name, ...carrier })
  const carriedBy = async () =>
    (await backend.request('GET', `/api/personnel/${person.id}/beacons`, token))
      .json()
      .data.map(({ id }: { id: string }) => id)
  const { data: first } = (await create('First badge')).json()
  t.same(await carriedBy(), [first.id])
  const { data: second } = (await create('Second badge')).json()
  t.same(await carriedBy(), [second.id])
  await backend.request('PATCH', `/api/transmitters/${first.id}`, token, carrier)
  t.same(await carriedBy(), [first.id])

  const bulk = (body: object) => backend.request('POST', '/api/transmitters/bulk', token, body)
  t.equal((await bulk({ transmitters: [{ id: second.id, ...carrier }] })).status, 200)
  t.same(await carriedBy(), [second.id], 'after a bulk request with rows')
  t.equal((await bulk({ ids: [first.id], changes: carrier })).status, 200)
  t.same(await carriedBy(), [first.id], 'after a bulk request with ids')
  t.equal((await bulk({ transmitters: [{ name: 'Third badge', entity_type: 'employee', entityId: '0' }] })).status, 409)
  t.equal((await bulk({ ids: [first.id] })).status, 200, 'without changes')
  t.same(await carriedBy(), [first.id])
})

t.test('a list', async (t) => {
  const token = await backend.signIn('operator')
  const list = async (query: string) => (await backend.request('GET', `/api/transmitters${query}`, token)).json()

  t.test('a list is paged and has its total', async (t) => {
    const { data, meta } = await list('?limit=10&page=2&sort=id')
    t.same([data.length, meta.limit, meta.offset], [10, 10, 10])
    t.ok(meta.total >= 300)
    t.equal(data[0].id, 'AC233F000011')
  })

  t.test('a list can be filtered, searched and sorted', async (t) => {
    const { data } = await list('?entity_type=visitor&sort=id&order=desc&limit=5')
    t.ok(data.every(({ entity_type }: { entity_type: string }) => entity_type === 'visitor'))
    t.ok(data[0].id > data[4].id)
    t.equal((await list('?search=badge+0123')).data[0].name, 'Badge 0123')
    const guests = (await list('?search=contractor&limit=100')).data
    t.ok(guests.length > 0 && guests.every(({ entity_type: kind }: Record<string, unknown>) => kind === 'contractor'))
    t.match((await list('?search=juniper+cleaning')).data[0], { company: 'Juniper Cleaning', carriedBy: /\w+ \w+/ })
    const { data: carried } = await list('?search=tool+trolley')
    t.ok(carried.length > 0)
    t.ok(
      carried.every(({ carriedBy }: { carriedBy: string }) => /tool trolley/i.test(carriedBy)),
      'by the carrier'
    )
    t.equal((await list('?search=%25')).data.length, 0, 'a percent sign is a character like others')
    t.equal((await list('?constructor=x&__proto__=y&limit=1')).success, true, 'unknown parameters are not filters')
  })

  const rejected = 'limit=0 limit=x limit=1e9 limit=2.5 limit=true offset=-1 sort=id+desc;drop sort=constructor'.split(
    ' '
  )
  for (const query of rejected.map((text) => `?${text}`)) {
    t.test(`a list rejects ${query}`, async (t) => {
      t.match(await list(query), { success: false, error: { code: 'VALIDATION_FAILED' } })
    })
  }
})

t.test('the backend rejects an invalid body with field errors', async (t) => {
  const token = await backend.signIn('operator')
  const response = await backend.request('POST', '/api/zones', token, { floorId: 'f-5', capacity: 'many' })

  t.equal(response.status, 400)
  t.same(
    response
      .json()
      .error.details.map(({ path }: { path: string }) => path)
      .filter((path: string) => path !== ''),
    ['/name', '/capacity']
  )
})
