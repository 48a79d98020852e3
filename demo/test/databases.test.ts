import t from 'tap'
import { routeTables } from '../../src/gateway/routes/index.js'
import { newDatabase } from '../../test/helper/postgres.js'
import { form, PNG, startTestBackend, type TestBackend } from './demo-backend.js'

// The embedded database is another build of PostgreSQL with another driver.

const NOON = Date.UTC(2025, 10, 14, 12)

/** Routes that the gateway does not declare. */
const HISTORY = ['tracks/f-1', 'carrier/AC233F000040', 'occupancy'].map((path) => `/api/positions/${path}`)

const READS = routeTables
  .flatMap(({ rows }) => rows)
  .filter(({ method, path }) => method === 'GET' && !/:token|health$|health\/|csrf|negotiate/.test(path))
  .map(({ path }) =>
    path
      .replace(':floorId', 'f-1')
      .replace(':deviceId', 'AC233F000040')
      .replace(/\/:\w+/, '/1')
  )

const WRITES: readonly (readonly [string, string, unknown])[] = [
  [
    'POST',
    '/api/zones',
    {
      name: 'Roof',
      floorId: 'f-3',
      polygon: [
        [0, 0],
        [4, 0],
        [4, 4]
      ],
      capacity: 3,
      more: { a: [1] }
    }
  ],
  ['PUT', '/api/zones/2', { capacity: null, metadata: { sign: 'A' } }],
  ['PUT', '/api/zones/none', { capacity: 1 }],
  ['POST', '/api/zones', { name: 'Nowhere', floorId: 'f-99' }],
  ['POST', '/api/zones', { name: 'A text with \u0000 in it' }],
  [
    'POST',
    '/api/personnel',
    { firstName: 'Ada', lastName: 'Example', department: 'research', transmitterId: 'AC233F000002' }
  ],
  ['PUT', '/api/personnel/3', { transmitterId: null, startDate: 1763200000000 }],
  ['POST', '/api/personnel/batch-delete', { ids: [12, 'p-14'] }],
  ['PUT', '/api/buildings/order', { order: [3, 1, 2] }],
  ['PUT', '/api/transmitters/AC233F000050', { name: 'Only a name' }],
  ['POST', '/api/receivers/bulk', { receivers: [{ id: 4, name: 'Renamed' }, { name: 'New' }] }],
  ['POST', '/api/gateways/sync-status', { gatewayIds: ['gw-1', 'gw-2'], status: 'synced', configVersion: 18 }],
  ['POST', '/api/emergency/trigger', { type: 'fire', buildingId: 2 }],
  ['PUT', '/api/mgmt/settings/ble', { rssiThreshold: -80 }],
  ['DELETE', '/api/mgmt/departments/8', undefined],
  ['DELETE', '/api/floors/f-9', undefined]
]

/** All responses, in order. */
const conversation = async (backend: TestBackend): Promise<Map<string, unknown>> => {
  const token = await backend.signIn('admin')
  await backend.backend.simulator.backfill(60_000)
  for (let second = 0; second < 3; second += 1) {
    await backend.backend.simulator.tick()
    backend.advance(1000)
  }
  const responses = new Map<string, unknown>()
  const note = async (method: string, path: string, body?: unknown): Promise<void> => {
    const response = await backend.request(method, path, token, body)
    responses.set(`${responses.size} ${method} ${path}`, [response.status, response.body])
  }
  for (const path of HISTORY) await note('GET', path)
  for (const [method, path, body] of WRITES) await note(method, path, body)
  const { headers, body = '' } = form(PNG)
  await backend.send('/api/personnel/5/photo', {
    method: 'POST',
    headers: { ...headers, authorization: `Bearer ${token}` },
    body
  })
  await note('GET', '/api/personnel/5/photo')
  for (const path of READS) await note('GET', path)
  return responses
}

t.test('PostgreSQL and the embedded database give the same responses', async (t) => {
  const url = await newDatabase()
  const embedded = await conversation(await startTestBackend(t, { nowMs: NOON, database: 'embedded' }))
  const real = await conversation(await startTestBackend(t, { nowMs: NOON, database: { url } }))

  t.same([...real.keys()], [...embedded.keys()])
  for (const [question, response] of real) t.same(embedded.get(question), response, question)

  t.test('a session survives a restart of the backend with the same demo password', async (t) => {
    const before = await startTestBackend(t, { nowMs: NOON, database: { url }, newIds: 'before' })
    const token = await before.signIn('viewer')
    const after = await startTestBackend(t, { nowMs: NOON, database: { url }, newIds: 'after' })
    t.equal((await after.request('GET', '/api/floors', token)).status, 200)
  })

  t.test('data in PostgreSQL survives a restart, and the demo password is updated', async (t) => {
    const env = { DEMO_PASSWORD: 'another-password' }
    const backend = await startTestBackend(t, { nowMs: NOON, database: { url }, env, newIds: 'later' })
    const credentials = { email: 'admin@example.com', password: 'another-password' }
    const { token } = (await backend.request('POST', '/api/auth/login', null, credentials)).json().data

    const { data, meta } = (await backend.request('GET', '/api/zones?search=Roof', token)).json()
    t.match(data, [{ name: 'Roof', more: { a: [1] } }])
    t.equal(meta.total, 1)

    // PostgreSQL has several connections, so these requests run concurrently.
    const changes = Object.fromEntries(Array.from({ length: 8 }, (_, index) => [`added${index}`, index]))
    const group = '/api/mgmt/settings/general'
    await Promise.all(
      Object.entries(changes).map(([name, value]) => backend.request('PATCH', group, token, { [name]: value }))
    )
    t.match((await backend.request('GET', group, token)).json().data, changes, 'of changes at once, none is lost')
  })
})
