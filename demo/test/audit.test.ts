import t from 'tap'
import { sentenceOf } from '../backend/audit/sentence.js'
import { startTestBackend } from './demo-backend.js'

const MINUTE = 60_000

interface Entry {
  readonly id: string
  readonly action: string
  readonly sentence: string
  readonly concerned: string | null
}

const backend = await startTestBackend(t)
await backend.backend.simulator.tick()
const admin = await backend.signIn('admin')
const viewer = await backend.signIn('viewer')
const send = (method: string, path: string, body?: unknown) => backend.request(method, path, admin, body)
const entries = async (query: string): Promise<Entry[]> => (await send('GET', `/api/audit/logs?${query}`)).json().data
const sentences = async (query: string): Promise<string[]> => (await entries(query)).map(({ sentence }) => sentence)
const newest = async (query = ''): Promise<string | undefined> => (await sentences(`limit=1&${query}`))[0]

t.test('the sentences of the audit log', async (t) => {
  t.test('a changed setting has the value before and after', async (t) => {
    await send('PUT', '/api/battery/thresholds', { low: 15 })
    t.equal(await newest('action=battery.update'), 'Alex Admin changed the battery threshold from 20 % to 15 %.')
    await send('PATCH', '/api/mgmt/settings/privacy', { positionHistoryDays: 1 })
    t.equal(
      await newest('action=settings.update'),
      'Alex Admin changed the time after which positions are deleted from 7 days to 1 day.'
    )
    await send('PATCH', '/api/mgmt/settings/alerts', { zoneBreach: false })
    t.equal(await newest('action=settings.update'), 'Alex Admin switched alerts about people in restricted zones off.')
  })

  t.test('a changed record has its name, and names of the records that it refers to', async (t) => {
    const { data } = (await send('GET', '/api/mgmt/departments')).json()
    const { id, departmentId } = (await send('GET', '/api/personnel/12')).json().data
    const [from, to] = [
      data.find((one: Entry) => one.id === departmentId),
      data.find((one: Entry) => one.id !== departmentId)
    ]
    await send('PUT', `/api/personnel/${id}`, { firstName: 'Ada', lastName: 'Example' })
    t.match(
      await newest('action=personnel.update'),
      /^Alex Admin changed the name of person Ada Example from “.+” to “Ada Example”\.$/
    )
    await send('PUT', `/api/personnel/${id}`, { departmentId: to.id })
    t.equal(
      await newest('action=personnel.update'),
      `Alex Admin changed the department of person Ada Example from “${from.name}” to “${to.name}”.`
    )
    await send('PUT', `/api/personnel/${id}`, { jobTitle: 'Nurse', isFirstAider: true, metadata: { badge: [1] } })
    t.match(
      await newest('action=personnel.update'),
      /^Alex Admin changed person Ada Example: job title from “.+” to “Nurse”; .*first aider switched on/
    )
  })

  t.test('a bulk change names what the rows have in common', async (t) => {
    await send('POST', '/api/personnel/bulk-deactivate', { ids: ['20', '21'] })
    t.match(await newest('action=personnel.update'), /^Alex Admin deactivated person .+, person .+\.$/)
  })

  t.test('a rejected and a failed action are sentences too', async (t) => {
    await backend.request('PATCH', '/api/mgmt/settings/privacy', viewer, { auditDays: 30 })
    t.equal(await newest('result=denied'), 'Vic Viewer was not permitted to change settings.')
    await backend.request('POST', '/api/auth/login', null, { email: 'nobody@example.com', password: 'wrong' })
    t.equal(await newest('result=failed'), 'The sign-in with the account “nobody@example.com” failed.')
  })

  t.test('a secret is never written', async (t) => {
    const password = 'a-very-secret-word'
    const user = { email: 'eva@example.com', displayName: 'Eva', password, role: 'viewer' }
    const { id } = (await send('POST', '/api/users', user)).json().data
    await send('PUT', `/api/users/${id}`, { password: `${password}-2`, displayName: 'Eva Example' })
    t.equal(
      await newest('action=admin.users'),
      'Alex Admin changed the display name of user Eva Example from “Eva” to “Eva Example”.'
    )
    await send('POST', `/api/users/${id}/reset-password`, { newPassword: `${password}-3` })
    t.equal(await newest('action=admin.users'), 'Alex Admin set a new password of user Eva Example.')
    await send('PATCH', '/api/mgmt/settings/general', { webhookSecret: password })
    t.equal(await newest('action=settings.update'), 'Alex Admin changed the webhook secret (general settings).')
    t.notMatch((await send('GET', '/api/audit/logs?limit=1000')).body, password)
  })

  t.test('an unknown action still gives a sentence', async (t) => {
    const entry = { result: 'done', method: 'POST', path: '/api/other', userName: null, account: null }
    t.equal(
      sentenceOf({ ...entry, action: 'other.thing', details: null }),
      'Somebody who is not signed in added other.'
    )
  })
})

t.test('who looked up whom', async (t) => {
  const { transmitterId, name } = (await send('GET', '/api/personnel/30')).json().data
  const look = () => backend.request('GET', `/api/positions/carrier/${transmitterId}`, viewer)
  const lookups = () => sentences(`personId=personnel/30&userId=demo-viewer`)

  t.test('a card that is open for minutes writes one entry', async (t) => {
    await look()
    await look()
    t.same(await lookups(), [`Vic Viewer looked up where ${name} is.`])
    backend.advance(16 * MINUTE)
    await look()
    t.equal((await lookups()).length, 2)
  })

  t.test('a search that shows positions writes who was found, and each person once', async (t) => {
    for (const search of [name.slice(0, -1), name])
      await backend.request('GET', `/api/transmitters?search=${encodeURIComponent(search)}`, viewer)
    t.match((await lookups())[0], new RegExp(`^Vic Viewer searched for “${name.slice(0, -1)}” and saw where ${name}`))
    t.equal((await lookups()).length, 3)
  })

  t.test('past positions write the person, or the floor', async (t) => {
    await (await backend.backend.simulator.backfill(2 * MINUTE)).stored
    await backend.request('GET', `/api/positions/history?transmitterId=${transmitterId}`, viewer)
    t.equal((await lookups())[0], `Vic Viewer looked at the past positions of ${name}.`)
    await backend.request('GET', '/api/positions/tracks/f-1', viewer)
    await backend.request('GET', '/api/positions/tracks/f-1?minutes=10', viewer)
    t.equal((await entries('action=lookup.floor&userId=demo-viewer')).length, 1)
    t.match(
      await newest('action=lookup.floor'),
      /^Vic Viewer looked at the movements of everyone on the floor Main House – Ground floor\.$/
    )
  })

  t.test('assets are not people', async (t) => {
    const { data } = (await send('GET', '/api/assets/7')).json()
    const { length } = await entries('limit=1000')
    await backend.request('GET', `/api/positions/carrier/${data.transmitterId}`, viewer)
    t.equal((await entries('limit=1000')).length, length)
  })

  t.test('a lookup is not shown to users who may not read the audit log', async (t) => {
    const { body } = await backend.request('GET', '/api/activity?limit=1000', viewer)
    t.notMatch(body, 'lookup')
  })

  t.test('a lookup does not make the viewer the author of a change', async (t) => {
    await send('PUT', '/api/personnel/30', { jobTitle: 'Porter' })
    await backend.request('GET', '/api/personnel/30', viewer)
    const { error } = (await send('PUT', '/api/personnel/30?version=1', { jobTitle: 'Guard' })).json()
    t.match(error, { code: 'RECORD_CHANGED', changedBy: 'Alex Admin' })
  })
})

t.test('the entries of a person, of a user, and one entry', async (t) => {
  const { data } = (await send('GET', '/api/audit/summary')).json()
  t.ok(data.byPerson.some(({ id }: Entry) => id === 'personnel/12'))
  t.match(data.byAccount[0], { account: 'admin@example.com', name: 'Alex Admin' })
  const about = await entries('personId=personnel/12&limit=100')
  t.ok(about.length > 2 && about.every(({ concerned }) => concerned !== null))
  t.same(await entries('personId=personnel/0'), [])
  const [first] = about
  t.match((await send('GET', `/api/audit/logs/${first?.id}`)).json().data, { ...first, details: Object })
  t.equal((await send('GET', '/api/audit/logs/none')).status, 404)
  t.equal((await backend.request('GET', `/api/audit/logs/${first?.id}`, viewer)).status, 403)
  t.match(
    (await send('GET', '/api/audit/export')).body,
    /^.?at,sentence,action,.*\r\n.*Vic Viewer was not permitted to see the audit log/
  )
})
