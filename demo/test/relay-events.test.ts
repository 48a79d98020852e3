import t from 'tap'
import { signBody } from '../../src/shared/webhook-signature.js'
import { startTestBackend } from './demo-backend.js'

const SECRET = 'a-secret-for-the-events-of-the-relay'
const backend = await startTestBackend(t, { env: { REALTIME_SIGNING_SECRET: SECRET } })
const CLIENT = { client: 'c1', transport: 'websocket', protocol: 'json', encoding: 'json' }

const post = (event: string, body: unknown, secret = SECRET) => {
  const text = JSON.stringify(body)
  return backend.send(`/relay/${event}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-gatehouse-signature': signBody(text, [secret], Date.now()) },
    body: text
  })
}
const subscribe = async (user: string, channel: string) =>
  (await post('subscribe', { ...CLIENT, user, channel })).json()
const rpc = async (user: string, method: string, data: unknown) =>
  (await post('rpc', { ...CLIENT, user, method, data })).json()
const state = (channel: string, type: string) =>
  post('state', { events: [{ channel, type, time_ms: 1, id: `${channel} ${type}` }] })

const ALLOWED = { result: {} }
const DENIED = { error: { code: 403, message: 'Your account may not watch this floor.', temporary: false } }

t.test('accounts with the permission may watch the floors that exist', async (t) => {
  for (const user of ['demo-admin', 'demo-operator', 'demo-viewer'])
    t.same(await subscribe(user, 'floor:f-1'), ALLOWED, user)
  t.same(await subscribe('demo-admin', 'floor:none'), DENIED, 'a floor that does not exist')
  t.same(await subscribe('demo-admin', 'floor:'), DENIED)
  for (const user of ['nobody', '']) t.match(await subscribe(user, 'floor:f-1'), { error: { code: 403 } }, user)
})

t.test('an account that is inactive may not watch a floor', async (t) => {
  const admin = await backend.signIn('admin')
  const set = (isActive: boolean) => backend.request('PUT', '/api/users/demo-viewer', admin, { isActive })
  t.equal((await set(false)).status, 200)
  t.match(await subscribe('demo-viewer', 'floor:f-1'), { error: { code: 403 } })
  await set(true)
  t.same(await subscribe('demo-viewer', 'floor:f-1'), ALLOWED)
})

t.test('the method alerts.acknowledge acknowledges alerts for accounts with the permission', async (t) => {
  const admin = await backend.signIn('admin')
  const { data: alerts } = (await backend.request('GET', '/api/alerts?state=open', admin)).json()
  const ids = [alerts[0].id]

  t.match(await rpc('demo-viewer', 'alerts.acknowledge', { ids }), { error: { code: 403 } })
  t.match(await rpc('demo-operator', 'alerts.acknowledge', { ids: 7 }), { error: { code: 400 } })
  t.match(await rpc('demo-operator', 'alerts.acknowledge', null), { error: { code: 400 } })
  t.same(await rpc('demo-operator', 'alerts.acknowledge', { ids }), { result: { data: { affected: 1 } } })
  t.same(await rpc('demo-operator', 'alerts.acknowledge', { ids }), { result: { data: { affected: 0 } } })
  for (const method of ['', 'alerts.delete', 'constructor', '__proto__'])
    t.match(await rpc('demo-admin', method, {}), { error: { code: 404 } }, method)

  const { data: audited } = (await backend.request('GET', '/api/audit/logs?action=alerts.update', admin)).json()
  const results = audited.map((entry: { userId: string; result: string }) => [entry.userId, entry.result])
  t.ok(results.some(([user, result]: string[]) => user === 'demo-operator' && result === 'done'))
  t.ok(results.some(([user, result]: string[]) => user === 'demo-viewer' && result === 'denied'))
})

t.test('a floor that becomes watched or unwatched is announced', async (t) => {
  const announced = async (channel: string, type: string): Promise<unknown[]> => {
    backend.publications.length = 0
    t.equal((await state(channel, type)).status, 200)
    // The backend checks its alerts meanwhile, every two seconds.
    const announcements = backend.publications.filter(({ data }) => data.type !== 'alerts')
    return announcements.map((publication) => [publication.channel, publication.data])
  }
  const change = [['global:all', { type: 'watchers-changed' }]]

  t.same(await announced('floor:f-2', 'occupied'), change)
  t.same(await announced('floor:f-2', 'vacated'), change)
})

t.test('the watchers of a floor are unknown while the relay does not respond', async (t) => {
  const viewer = await backend.signIn('viewer')
  t.equal((await backend.request('GET', '/api/floors/f-3/watchers', viewer)).json().data, null)
})

t.test('events without the signature of the relay are rejected', async (t) => {
  const body = { ...CLIENT, user: 'demo-admin', channel: 'floor:f-1' }
  t.equal((await post('subscribe', body, 'another-secret')).status, 401)
  t.equal((await backend.request('POST', '/relay/subscribe', await backend.signIn('admin'), body)).status, 401)
  t.equal((await backend.send('/relay/subscribe')).status, 404)
})

t.test('a backend without REALTIME_SIGNING_SECRET has no routes for events', async (t) => {
  const other = await startTestBackend(t)
  t.equal((await other.request('POST', '/relay/subscribe', null, {})).status, 404)
})
