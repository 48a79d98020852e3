import t from 'tap'
import { locationOf } from '../../alert-text.js'
import { alertCountsIn, alertDetail, alertPlace, alertState } from '../../web/alerts.js'
import { liveLink } from '../../web/live-link.js'
import type { Alert } from '../../web/types.js'

const alert: Alert = {
  id: 'a-1',
  kind: 'restricted-zone',
  severity: 'critical',
  state: 'open',
  since: '2025-11-15T09:00:00Z',
  name: 'Ada Example',
  carrier: 'visitor',
  transmitterId: 'T1',
  receiverId: null,
  zoneId: '7',
  zoneName: 'Server Room',
  floorId: 'f-3',
  floorName: 'Second floor',
  buildingName: 'Main House',
  occupancy: 3,
  capacity: 9,
  batteryLevel: 12.4,
  company: 'Corvus Audit',
  host: 'Bea Kim',
  acknowledgedBy: null,
  acknowledgedAt: null,
  escalatedAt: null,
  assignedTo: null,
  assignedName: null
}
const zone: Alert = { ...alert, kind: 'over-capacity', name: 'Server Room', transmitterId: null }
const receiver: Alert = { ...alert, kind: 'receiver-offline', transmitterId: null, receiverId: 'r-9' }

const linkOf = (shown: Alert) => {
  const place = alertPlace(shown)
  return place && liveLink(place)
}

t.test('an alert', async (t) => {
  t.test('an alert links to its person, zone or receiver on the live plan', async (t) => {
    t.same(linkOf(alert), { path: '/live/f-3', query: { selected: 'T1' } })
    t.same(linkOf(zone), { path: '/live/f-3', query: { zone: '7' } })
    t.same(linkOf(receiver), { path: '/live/f-3', query: { receiver: 'r-9' } })
    t.equal(linkOf({ ...alert, floorId: null }), null)
  })

  t.test('an alert says what was measured and where', async (t) => {
    t.equal(alertDetail(alert), 'Visitor without access in Server Room')
    t.equal(alertDetail(zone), '3 people, 9 allowed')
    t.equal(alertDetail({ ...alert, kind: 'battery-low' }), '12 % charge')
    t.match(
      alertDetail({ ...alert, kind: 'visit-overdue' }),
      /^Visitor, from Corvus Audit, expected until 15 Nov 2025, .*, host Bea Kim$/
    )
    t.equal(alertDetail({ ...alert, kind: 'tag-silent' }), 'No signal from this visitor')
    t.equal(alertDetail(receiver), 'No report')
    t.equal(alertState(alert), 'Open')
    t.match(alertState({ ...alert, escalatedAt: '2025-11-15T10:00:00Z' }), /^Open, escalated at 15 Nov 2025/)
    t.match(
      alertState({ ...alert, acknowledgedBy: 'Bea', acknowledgedAt: '2025-11-15T10:00:00Z' }),
      /^Acknowledged by Bea, 15 Nov 2025/
    )
    t.equal(locationOf(alert), 'Server Room, Second floor, Main House')
    t.equal(locationOf(zone), 'Second floor, Main House')
    t.equal(locationOf({ ...alert, zoneName: null, floorName: null, buildingName: null }), 'No position')
  })
})

t.test('a publication of alerts has counts, other publications have none', async (t) => {
  const data = [{ kind: 'battery-low', open: 2, acknowledged: 1 }]
  t.same(alertCountsIn({ type: 'alerts', data }), data)
  for (const other of [{ type: 'other', data }, { type: 'alerts' }, { type: 'alerts', data: [null] }])
    t.equal(alertCountsIn(other), null)
})
