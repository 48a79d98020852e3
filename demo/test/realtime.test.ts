import { Value } from '@sinclair/typebox/value'
import t from 'tap'
import { AmbientBatchSchema, PositionBatchSchema } from '../../schemas/realtime.js'
import { createLogger } from '../../src/shared/logger.js'
import { createPublisher } from '../../src/shared/publisher.js'
import { collect, event, officialClient, startRelay } from '../../test/helper/relay.js'
import { API_KEY } from '../../test/helper/relay-rules.js'
import { startTestBackend, type TestBackend } from './demo-backend.js'

const backend = await startTestBackend(t)
const { simulator } = backend.backend
const admin = await backend.signIn('admin')

/** The publications during these seconds. */
const seconds = async ({ publications }: TestBackend, count: number) => {
  publications.length = 0
  for (let second = 0; second < count; second += 1) await simulator.tick()
  return publications.slice()
}

t.test('negotiate', async (t) => {
  t.test('negotiate returns the relay address and a token for one hour', async (t) => {
    const { success, data } = (await backend.request('GET', '/api/negotiate', admin)).json()
    const claims = JSON.parse(Buffer.from(data.token.split('.')[1], 'base64url').toString())

    t.equal(success, true)
    t.match(data, { url: 'ws://localhost:8100/connection/websocket', expiresIn: 3600 })
    t.same(Object.keys(claims).toSorted(), ['exp', 'iat', 'sub'])
    t.same([claims.sub, claims.exp - claims.iat], ['demo-admin', 3600])
  })

  t.test('the relay accepts the negotiated token and delivers positions', async (t) => {
    const relay = await startRelay(t)
    const publisher = createPublisher({
      url: `${relay.url}/api`,
      apiKey: API_KEY,
      log: createLogger({ name: 'test', level: 'silent' })
    })
    t.teardown(() => publisher.close())
    const getToken = async (): Promise<string> =>
      (await backend.request('POST', '/api/negotiate', admin)).json().data.token
    const client = officialClient(t, relay, 'websocket', { getToken })
    const subscription = client.newSubscription('floor:f-1')
    const collected = collect(subscription)
    const subscribed = event(subscription, 'subscribed')
    subscription.subscribe()
    client.connect()
    await subscribed

    for (const { channel, data } of await seconds(backend, 1)) publisher.publish(channel, data)
    await collected.until(({ length }) => length > 0)
    t.ok(Value.Check(PositionBatchSchema, collected.data[0]))
  })
})

t.test('each second', async (t) => {
  const published = await seconds(backend, 8)
  const positions = published.filter(({ channel }) => channel.startsWith('floor:'))
  const ambient = published.filter(({ data }) => data.type === 'ambient-batch')

  t.test('each floor with people gets one batch', async (t) => {
    t.equal(new Set(positions.map(({ channel }) => channel)).size, 9)
    t.ok(positions.every(({ data }) => Value.Check(PositionBatchSchema, data)))
  })

  t.test('ambient devices are published on the global channel', async (t) => {
    t.ok(ambient.length >= 1 && ambient.length < 8)
    t.ok(ambient.every(({ data }) => Value.Check(AmbientBatchSchema, data)))
  })
})

t.test('a page that opens a floor', async (t) => {
  const { data } = (await backend.request('GET', '/api/context/floor/f-1', admin)).json()

  t.test('the floor context has the size, walls, zones and receivers in metres', async (t) => {
    t.match(data.floor, { id: 'f-1', width: 74, height: 25, imageUrl: '/api/floors/f-1/plan' })
    t.ok(data.walls.every((wall: number[]) => wall.length === 4))
    t.ok(data.zones.every(({ polygon }: { polygon: unknown[] }) => polygon.length === 4))
    t.ok(data.receivers.every(({ position }: { position: { x: number } }) => position.x <= 74))
    t.equal(data.channel, 'floor:f-1')
  })

  t.test('the floor context has the positions of the last batch', async (t) => {
    const batch = (await seconds(backend, 1)).find(({ channel }) => channel === 'floor:f-1')
    const { positions } = (await backend.request('GET', '/api/context/floor/f-1', admin)).json().data
    const places = (list: readonly Record<string, unknown>[]) =>
      list.map(({ transmitterId, position, zoneId }) => ({ transmitterId, position, zoneId }))
    t.same(
      places(positions),
      places(batch?.data.data.filter(({ floorId }) => floorId === 'f-1') ?? []).toSorted((one, other) =>
        String(one.transmitterId) < String(other.transmitterId) ? -1 : 1
      )
    )
    t.ok(positions.every(({ name }: { name: unknown }) => typeof name === 'string' && name !== ''))
  })

  t.test('the site context and the zones count people, not assets', async (t) => {
    const { buildings } = (await backend.request('GET', '/api/context', admin)).json().data
    const floors: { id: string; people: number }[] = buildings.flatMap(({ floors }: { floors: unknown }) => floors)
    const { positions } = (await backend.request('GET', '/api/context/floor/f-1', admin)).json().data
    const people = positions.filter(({ entityType }: { entityType: string }) => entityType !== 'asset')
    t.equal(floors.find(({ id }) => id === 'f-1')?.people, people.length)
    t.equal(
      floors.reduce((sum, floor) => sum + floor.people, 0),
      210
    )
    const zones = (await backend.request('GET', '/api/zones?floorId=f-1', admin)).json().data
    t.equal(
      zones.reduce((sum: number, { occupancy }: { occupancy: number }) => sum + occupancy, 0),
      people.length
    )
  })
})

t.test('an assigned transmitter starts to move and an unassigned one disappears', async (t) => {
  const isReceived = async (id: string): Promise<boolean> =>
    (await seconds(backend, 4)).some(({ data }) => data.data.some(({ transmitterId }) => transmitterId === id))
  const assign = (body: object) =>
    backend.request('POST', '/api/transmitters/assign', admin, { transmitterId: 'AC233F000009', ...body })

  t.equal(await isReceived('AC233F000009'), false)
  t.match((await assign({ personnelId: '9' })).json().data, {
    entity_type: 'employee',
    entityId: '9',
    status: 'assigned'
  })
  t.equal(await isReceived('AC233F000009'), true)
  t.equal((await backend.request('GET', '/api/personnel/9', admin)).json().data.transmitterId, 'AC233F000009')
  await assign({ entityId: null })
  t.equal(await isReceived('AC233F000009'), false)
})

t.test('a carrier that changes floors is published once more on the floor that it has left', async (t) => {
  const floors = new Map<unknown, string>()
  const left: string[] = []
  const entered: string[] = []
  for (let second = 0; second < 300 && left.length === 0; second += 1) {
    const batches = (await seconds(backend, 1)).filter(({ channel }) => channel.startsWith('floor:'))
    for (const { channel, data } of batches) {
      for (const { transmitterId, floorId } of data.data) {
        const before = floors.get(transmitterId)
        if (channel !== `floor:${floorId}`) left.push(`${transmitterId} ${channel}`)
        else if (before !== undefined && before !== channel) entered.push(`${transmitterId} ${before}`)
      }
    }
    for (const { channel, data } of batches) {
      for (const { transmitterId, floorId } of data.data)
        if (channel === `floor:${floorId}`) floors.set(transmitterId, channel)
    }
  }
  t.ok(left.length > 0)
  t.same(left.toSorted(), entered.toSorted())
})

t.test('a change of what plans show is published to all pages without details', async (t) => {
  const changes = async (method: string, path: string, body?: object) => {
    backend.publications.length = 0
    const { status } = await backend.request(method, path, admin, body)
    // The backend checks its alerts meanwhile, every two seconds.
    const announcements = backend.publications.filter(({ data }) => data.type !== 'alerts')
    return [status, announcements.map(({ channel, data }) => [channel, data])]
  }
  const published = [['global:all', { type: 'site-changed' }]]
  t.same(await changes('PUT', '/api/personnel/3', { jobTitle: 'Librarian' }), [200, published])
  t.same(await changes('PUT', '/api/zones/1', { capacity: 'many' }), [400, []], 'not after a rejected change')
  t.same(await changes('PATCH', '/api/mgmt/settings/general', { organizationName: 'X' }), [200, []])
  t.same(await changes('GET', '/api/personnel/3'), [200, []])
  t.same(await changes('POST', '/api/emergency/trigger', { type: 'fire', isDrill: true }), [
    201,
    [['global:all', { type: 'emergency-changed' }]]
  ])
})

t.test('nobody is located on a floor that was deleted', async (t) => {
  const isLocated = async (): Promise<boolean[]> => {
    const published = await seconds(backend, 4)
    const { data } = (await backend.request('GET', '/api/transmitters?currentFloorId=f-9', admin)).json()
    return [published.some(({ channel }) => channel === 'floor:f-9'), data.length > 0]
  }
  t.same(await isLocated(), [true, true])
  t.equal((await backend.request('DELETE', '/api/floors/f-9', admin)).status, 200)
  await seconds(backend, 3)
  t.same(await isLocated(), [false, false])
})
