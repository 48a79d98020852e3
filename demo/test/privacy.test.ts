import t from 'tap'
import { positionRetention } from '../privacy-settings.js'
import { startTestBackend } from './demo-backend.js'

const DAY = 24 * 60 * 60_000
const SETTINGS = '/api/mgmt/settings/privacy'

t.test('the privacy settings', async (t) => {
  const backend = await startTestBackend(t)
  const admin = await backend.signIn('admin')

  t.test('every user can read how long data is stored, and only administrators change it', async (t) => {
    const viewer = await backend.signIn('viewer')
    const { data } = (await backend.request('GET', SETTINGS, viewer)).json()
    t.same(data, { positionHistoryDays: 7, auditDays: 365, maxPositionHours: null, version: 1 })
    t.equal((await backend.request('GET', SETTINGS, null)).status, 401)
    t.equal((await backend.request('PATCH', SETTINGS, viewer, { auditDays: 30 })).status, 403)
  })

  t.test('a time outside of the limits is rejected', async (t) => {
    for (const body of [
      { positionHistoryDays: 0 },
      { positionHistoryDays: 366 },
      { auditDays: 29 },
      { auditDays: 1.5 }
    ]) {
      const response = await backend.request('PATCH', SETTINGS, admin, body)
      t.match([response.status, response.json()], [400, { error: { details: [{ path: `/${Object.keys(body)[0]}` }] } }])
    }
  })

  t.test('audit entries are deleted after their days', async (t) => {
    const oldest = async (): Promise<string> =>
      (await backend.request('GET', '/api/audit/logs?sort=at&order=asc&limit=1', await backend.signIn('admin'))).json()
        .data[0].at
    const first = await oldest()
    backend.advance(40 * DAY)
    await backend.backend.retention.check()
    t.equal(await oldest(), first)
    await backend.request('PATCH', SETTINGS, await backend.signIn('admin'), { auditDays: 30 })
    await backend.backend.retention.check()
    t.ok(Date.parse(await oldest()) > Date.now() + 39 * DAY)
  })
})

t.test('the retention of positions is limited by the embedded database', async (t) => {
  const days = { positionHistoryDays: 7, auditDays: 365 }
  t.equal(positionRetention({ ...days, maxPositionHours: null }), '7 days')
  t.equal(positionRetention({ ...days, positionHistoryDays: 1, maxPositionHours: null }), '1 day')
  t.equal(positionRetention({ ...days, maxPositionHours: 8 }), '8 hours')
})
