import { EmergencyContactCreateSchema } from '../../schemas/emergency.js'
import { capitalized, dateTimeText, lastingText } from '../../src/ui/format.js'
import { ALERT_TITLES, SEVERITY_TITLES } from '../alert-kinds.js'
import { alertChanges } from './composables/useAlertCounts.js'
import { activeEmergencyIds } from './composables/useSiteStatus.js'
import { kindOf, outcomeOf, titleOf } from './emergency-title.js'
import { liveLink } from './live-link.js'
import { define, figure, type RowTask, shown, state, titled, words } from './resource.js'
import { acknowledgeAlerts, api, call } from './services.js'
import type { Alert, AuditRow, Contact, Emergency, ListResponse } from './types.js'

// Records of events: alerts, past emergencies with the contacts for the next one, and the audit log.

const acknowledging = ({ id, kind, name }: Alert): RowTask => ({
  icon: 'good',
  title: `Acknowledge ${ALERT_TITLES[kind].toLowerCase()}: ${name}`,
  save: () => acknowledgeAlerts([id]),
  action: 'Acknowledge',
  done: (_body, result) =>
    (result as { readonly affected: number }).affected === 0
      ? `${name} has already ended or been acknowledged`
      : `${name} was acknowledged`
})
const alertPlace = ({ kind, floorId, transmitterId, receiverId, zoneId }: Alert) => {
  if (floorId === null) return null
  return liveLink(kind === 'over-capacity' ? { floorId, zoneId } : { floorId, transmitterId, receiverId })
}
const alertState = ({ acknowledgedBy, acknowledgedAt }: Alert): string =>
  acknowledgedBy === null ? 'Open' : `Acknowledged by ${acknowledgedBy}, ${dateTimeText(acknowledgedAt)}`

export const eventResources = {
  alerts: define<Alert>({
    nouns: ['alert', 'alerts'],
    calls: { list: (options) => call('GET', '/api/alerts', options) },
    permission: 'alerts',
    name: ({ name }) => name,
    nameTitle: 'Name',
    detail: ({ zoneName, floorName, buildingName }) =>
      [zoneName, floorName, buildingName].filter(Boolean).join(', ') || 'No position',
    to: alertPlace,
    columns: [
      state('Severity', ({ severity }) => SEVERITY_TITLES[severity]),
      shown('Kind', ({ kind }) => ALERT_TITLES[kind], 'kind'),
      figure('Since', ({ since }) => dateTimeText(since), 'since'),
      figure('State', alertState, 'acknowledgedAt')
    ],
    filters: [
      { name: 'severity', label: 'Severity', options: titled(SEVERITY_TITLES) },
      { name: 'kind', label: 'Kind', options: titled(ALERT_TITLES) },
      { name: 'state', label: 'State', options: words('open', 'acknowledged') },
      { name: 'floorId', label: 'Floor', options: 'floors' }
    ],
    tasks: (alert, may) => (alert.state === 'open' && may('alerts.update') ? [acknowledging(alert)] : []),
    updates: () => alertChanges.value
  }),
  contacts: define<Contact>({
    nouns: ['contact', 'contacts'],
    calls: api.emergency.contacts,
    permission: 'emergency',
    name: ({ name }) => name,
    detail: ({ role, organization }) => [role, organization].filter(Boolean).join(', '),
    columns: [
      shown('Phone', ({ phone, mobile }) => phone ?? mobile),
      shown('E-mail address', ({ email }) => email),
      figure('Priority', ({ priority }) => priority, 'priority')
    ],
    schema: EmergencyContactCreateSchema,
    fields: ['name', 'role', 'organization', 'phone', 'mobile', 'email', 'priority', 'notes']
  }),
  past: define<Emergency>({
    nouns: ['emergency or drill', 'emergencies and drills'],
    calls: {
      list: ({ query, ...options }) =>
        api.emergency.list<ListResponse<Emergency>>({
          ...options,
          query: { sort: 'startedAt', order: 'desc', ...query, status: 'resolved' }
        })
    },
    permission: 'emergency',
    name: titleOf,
    nameTitle: 'Event',
    nameSort: 'type',
    to: ({ id }) => `/emergency/${id}`,
    columns: [
      state('Kind', kindOf),
      shown('Building', ({ buildingName }) => buildingName ?? 'Entire site'),
      figure('Started', ({ startedAt }) => dateTimeText(startedAt), 'startedAt'),
      shown('Duration', ({ startedAt, resolvedAt }) =>
        startedAt && resolvedAt ? lastingText(Date.parse(String(resolvedAt)) - Date.parse(startedAt)) : null
      ),
      shown('Muster', ({ muster }) => muster && `${muster.safe} of ${muster.total} safe`),
      shown('Outcome', outcomeOf)
    ],
    updates: () => activeEmergencyIds.value
  }),
  audit: define<AuditRow>({
    nouns: ['entry', 'entries'],
    calls: { list: api.audit.logs },
    permission: 'audit',
    nameTitle: 'Action',
    name: ({ action }) => action,
    nameSort: 'action',
    columns: [
      figure('Time', ({ at }) => dateTimeText(at), 'at'),
      shown('User', ({ userName, account }) => userName ?? account, 'account'),
      shown('Address', ({ ip }) => ip, 'ip'),
      shown('Path', ({ method, path }) => [method, path].filter(Boolean).join(' ')),
      state('Result', ({ result }) => capitalized(result), 'result')
    ],
    filters: [{ name: 'result', label: 'Result', options: words('done', 'failed', 'denied') }],
    exports: { CSV: api.audit.export }
  })
}
