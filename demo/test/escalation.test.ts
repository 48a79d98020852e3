import t from 'tap'
import { startTestBackend } from './demo-backend.js'

const MINUTE_MS = 60_000
const BATTERY = 'AC233F000040'

// The time stands still between two steps, so that nothing escalates on a slow machine.
const test = await startTestBackend(t, { nowMs: Date.now() })
const [admin, operator, viewer] = [
  await test.signIn('admin'),
  await test.signIn('operator'),
  await test.signIn('viewer')
]
const send = (method: string, path: string, body?: object, token = admin) => {
  // Records are in the order of their times.
  test.advance(1)
  return test.request(method, path, token, body)
}
const get = async (path: string) => (await send('GET', path)).json().data
const severities = (body: object) => send('PATCH', '/api/alerts/severities', body)

// The clock of the test must not raise alerts about anything else.
const OTHER_KINDS = ['zoneBreach', 'zoneOverCapacity', 'receiverOffline', 'transmitterSilent', 'visitOverdue']
await send('PATCH', '/api/mgmt/settings/alerts', Object.fromEntries(OTHER_KINDS.map((kind) => [kind, false])))

/** The alert of the battery after a check. */
const found = async () => {
  await test.backend.alerts.check()
  const all = await get('/api/alerts?limit=1000')
  return all.find(({ transmitterId }: { transmitterId: string }) => transmitterId === BATTERY)
}
const charge = (batteryLevel: number) => send('PATCH', `/api/transmitters/${BATTERY}`, { batteryLevel })
const later = async (minutes: number) => {
  test.advance(minutes * MINUTE_MS)
  return found()
}

/** Ends the alert and forgets it, so that the next one is new. */
const recharge = async () => {
  await charge(90)
  await found()
  await later(10)
}

t.test('severity', async (t) => {
  await charge(15)

  t.test('an alert has the severity of its kind, and a change takes effect at once', async (t) => {
    t.match(await found(), { severity: 'warning' })
    await severities({ 'battery-low': 'info', 'battery-critical': 'warning' })
    t.match(await found(), { severity: 'info' })
    await charge(5)
    t.match(await found(), { severity: 'warning' })
    await charge(15)
    await severities({ 'battery-low': 'warning', 'battery-critical': 'critical' })
  })

  t.test('alerts are sorted and filtered by severity', async (t) => {
    const [{ id }] = await get('/api/alerts?limit=1&sort=name&order=desc')
    const before = await get('/api/alerts?limit=1000&sort=severityRank&order=desc')
    t.ok(before.some((alert: { id: string }) => alert.id === id))
    const ranks: number[] = before.map(({ severityRank }: { severityRank: number }) => severityRank)
    t.ok(new Set(ranks).size > 1, 'several severities')
    t.same(ranks, ranks.toSorted().reverse())
    const critical = await get('/api/alerts?limit=1000&severity=critical')
    t.equal(critical.length, ranks.filter((rank) => rank === 3).length)
  })

  t.test('unknown severities and times are rejected, and only administrators change them', async (t) => {
    t.match((await severities({ 'battery-low': 'dire' })).json().error.details, [{ path: '/battery-low' }])
    t.match((await severities({ warningEscalatesAfterMinutes: 0 })).status, 400)
    t.match((await severities({ unknown: 'info' })).status, 400)
    t.equal((await send('PATCH', '/api/alerts/severities', { 'battery-low': 'info' }, operator)).status, 403)
    const [entry] = await get('/api/audit/logs?action=settings.update&result=done&limit=1')
    t.match(entry, { subject: 'alert severities' })
  })
})

t.test('assignment', async (t) => {
  const assign =
    (userId: string | null, expected?: string | null, token = operator) =>
    async () => {
      const { id } = await found()
      return send(
        'POST',
        '/api/alerts/assign',
        { ids: [id], userId, ...(expected !== undefined && { expected }) },
        token
      )
    }

  t.test('an alert is assigned to a user who may acknowledge it', async (t) => {
    t.match(await get('/api/alerts/assignees'), [
      { id: 'demo-admin', name: 'Alex Admin' },
      { id: 'demo-operator', name: 'Olive Operator' }
    ])
    const before = test.publications.length
    t.match((await assign('demo-operator', null)()).json().data, { affected: 1 })
    t.match(await found(), { assignedTo: 'demo-operator', assignedName: 'Olive Operator' })
    t.ok(
      test.publications.slice(before).some(({ data }) => data.type === 'alerts'),
      'open pages are notified'
    )
    const own = await get('/api/alerts?assignee=demo-operator')
    t.match(own, [{ transmitterId: BATTERY }])
    t.equal(
      (await get('/api/alerts?assignee=nobody&limit=1000')).some(({ id }: { id: string }) => id === own[0].id),
      false
    )
    const [entry] = await get('/api/audit/logs?action=alerts.update&limit=1')
    t.match(entry.subject, /battery-low .* to Olive Operator/)
  })

  t.test('a second user who takes the alert learns who has it', async (t) => {
    const response = await assign('demo-admin', null, admin)()
    t.equal(response.status, 409)
    t.match(response.json().error, {
      code: 'ASSIGNMENT_CHANGED',
      message: /Olive Operator has been assigned meanwhile/
    })
    t.match(await found(), { assignedTo: 'demo-operator' })
    t.equal((await assign('demo-admin', 'demo-operator', admin)()).status, 200)
    t.equal((await assign(null)()).status, 200)
    t.match(await found(), { assignedTo: null })
  })

  t.test('users without the permission neither assign nor are assigned', async (t) => {
    t.match((await assign('demo-viewer')()).json().error.details, [{ path: '/userId' }])
    t.match((await assign('unknown')()).status, 400)
    t.equal((await assign('demo-operator', undefined, viewer)()).status, 403)
    t.equal((await send('POST', '/api/alerts/assign', { ids: [], userId: null })).status, 400)
  })
})

t.test('escalation', async (t) => {
  const channel = async (name: string, more: object): Promise<string> => {
    const body = { name, type: 'webhook', url: 'http://127.0.0.1:9/', secret: 'a-secret-of-the-webhook', ...more }
    return (await send('POST', '/api/notifications/channels', body)).json().data.id
  }
  const eventsOf = async (id: string): Promise<string[]> => {
    const rows = await get(`/api/notifications/deliveries?channelId=${id}&sort=at`)
    return rows.map(({ event, subject }: { event: string; subject: string }) => `${event}: ${subject.split(':')[0]}`)
  }
  await recharge()
  await severities({
    infoEscalatesAfterMinutes: 10,
    warningEscalatesAfterMinutes: 20,
    criticalEscalatesAfterMinutes: 30
  })
  await severities({ 'battery-low': 'info' })
  // Every other alert is acknowledged, so that only this one escalates.
  const others = await get('/api/alerts?limit=1000')
  await send('POST', '/api/alerts/acknowledge', { ids: others.map(({ id }: { id: string }) => id) })
  const first = await channel('First', { events: 'new' })
  const critical = await channel('Critical only', { events: 'new', minSeverity: 'critical' })
  const second = await channel('Second list', { events: 'escalated' })
  await charge(15)

  t.test('an alert that nobody acknowledges rises from severity to severity', async (t) => {
    t.match(await found(), { severity: 'info', escalatedAt: null })
    t.match(await later(9), { severity: 'info', escalatedAt: null })
    const raised = await later(1)
    t.match(raised, { severity: 'warning' })
    t.ok(raised.escalatedAt)
    t.match(await later(19), { severity: 'warning', escalatedAt: raised.escalatedAt })
    t.match(await later(1), { severity: 'critical' })
  })

  t.test('the second list is notified at every escalation, and other channels once', async (t) => {
    await later(30)
    await later(60)
    t.same(await eventsOf(first), ['raised: Information'])
    t.same(await eventsOf(critical), ['raised: Critical'])
    t.same(await eventsOf(second), ['escalated: Escalated', 'escalated: Escalated', 'escalated: Escalated'])
  })

  t.test('an acknowledged alert does not escalate, nor does one without a time', async (t) => {
    await recharge()
    await charge(15)
    const { id } = await found()
    await send('POST', '/api/alerts/acknowledge', { ids: [id] })
    t.match(await later(60), { severity: 'info', escalatedAt: null })
    await recharge()
    await severities({ infoEscalatesAfterMinutes: null })
    await charge(15)
    t.match(await found(), { state: 'open' })
    t.match(await later(60), { severity: 'info', escalatedAt: null })
  })
})
