import { Type } from '@sinclair/typebox'
import type { CallOptions } from 'gatehouse-client'
import { AssetCreateSchema } from '../../schemas/assets.js'
import { BuildingCreateSchema } from '../../schemas/buildings.js'
import { EmergencyContactCreateSchema } from '../../schemas/emergency.js'
import { FloorCreateSchema } from '../../schemas/floors.js'
import { DepartmentCreateSchema } from '../../schemas/management.js'
import { PersonnelCreateSchema } from '../../schemas/personnel.js'
import { ReceiverUpdateSchema } from '../../schemas/receivers.js'
import { TransmitterPatchSchema } from '../../schemas/transmitters.js'
import { PasswordResetSchema, UserCreateSchema } from '../../schemas/users.js'
import { ZoneCreateSchema } from '../../schemas/zones.js'
import { capitalized, counted, dateTimeText, lastingText } from '../../src/ui/format.js'
import { ALERT_TITLES, SEVERITY_TITLES } from '../alert-kinds.js'
import { alertCounts } from './composables/useAlertCounts.js'
import { activeEmergencyIds } from './composables/useSiteStatus.js'
import { kindOf, outcomeOf, titleOf } from './emergency-title.js'
import { liveLink } from './live-link.js'
import type { Resource, RowTask } from './resource.js'
import { acknowledgeAlerts, api, call, session } from './services.js'
import type {
  Alert,
  Asset,
  AuditRow,
  Building,
  Contact,
  Department,
  Emergency,
  FloorRecord,
  ListResponse,
  Named,
  Person,
  Receiver,
  Transmitter,
  User,
  Zone
} from './types.js'

// Every resource that the page lists and edits: one entry each, shown by one list and one form.

const define = <Row extends { readonly id: string }>(resource: Resource<Row>): Resource<Row> => resource

const titled = (titles: Readonly<Record<string, string>>): readonly Named[] =>
  Object.entries(titles).map(([id, name]) => ({ id, name }))
const words = (...values: readonly string[]): readonly Named[] =>
  values.map((value) => ({ id: value, name: capitalized(value) }))

const PRESENCE = titled({ true: 'On site', false: 'Off site' })
const ASSET_STATUSES = words('in use', 'in repair', 'in storage')
const BATTERY_TONES = { critical: 'danger', low: 'danger', warning: 'warning', good: 'good' } as const
const SEVERITY_TONES = { critical: 'danger', warning: 'warning', info: '' } as const
const RESULT_TONES = { done: 'good', failed: 'warning', denied: 'danger' } as const
const USER_TONES = { Locked: 'danger', Inactive: '', Active: 'good' } as const

interface Carried {
  readonly currentFloorId: string | null
  readonly transmitterId: string | null
}
/** The place of a carrier on the live plan. */
const planOf = ({ currentFloorId: floorId, transmitterId }: Carried) =>
  floorId !== null && transmitterId !== null ? liveLink({ floorId, transmitterId }) : null
const personName = ({ firstName, lastName, name }: Pick<Person, 'firstName' | 'lastName' | 'name'>): string =>
  [firstName, lastName].filter(Boolean).join(' ') || (name ?? '')
const personState = ({ isActive, currentFloorId }: Person): string =>
  isActive === false ? 'Inactive' : currentFloorId ? 'On site' : 'Off site'

const userState = ({ lockedUntil, isActive }: User): keyof typeof USER_TONES => {
  if (lockedUntil !== null && Date.parse(lockedUntil) > Date.now()) return 'Locked'
  return isActive === false ? 'Inactive' : 'Active'
}
const unlocking = ({ id, email }: User): RowTask => ({
  icon: 'unlock',
  title: `Unlock ${email}`,
  note: 'The account was locked after too many failed sign-ins.',
  save: () => api.users.unlock(id),
  action: 'Unlock',
  done: () => `${email} was unlocked`
})
const resetting = ({ id, email }: User): RowTask => ({
  icon: 'key',
  title: `Reset the password of ${email}`,
  note: 'The user must choose a new password at the next sign-in. Existing sessions end immediately.',
  schema: PasswordResetSchema,
  specs: ['newPassword'],
  save: (body) => api.users.resetPassword(id, body),
  action: 'Reset',
  done: () => `The password of ${email} was reset`
})

const acknowledging = ({ id, kind, name }: Alert): RowTask => ({
  icon: 'good',
  title: `Acknowledge ${ALERT_TITLES[kind].toLowerCase()}: ${name}`,
  isImmediate: true,
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

/** Visitors and contractors are transmitters that are handed out, so they begin and end with one. */
const GuestSchema = Type.Object(
  {
    transmitterId: Type.String({ minLength: 1 }),
    carrierName: Type.String({ minLength: 1, maxLength: 200 }),
    company: Type.Union([Type.String({ maxLength: 200 }), Type.Null()])
  },
  { title: 'Guest' }
)
const patchGuest = (id: unknown, body: object) => api.transmitters.patch(String(id), body)
const guests = (kind: 'visitor' | 'contractor') =>
  define<Transmitter>({
    title: capitalized(`${kind}s`),
    nouns: [kind, `${kind}s`],
    calls: {
      list: ({ query, ...options }: CallOptions) =>
        api.transmitters.list({ ...options, query: { ...query, entity_type: kind } }),
      create: ({ transmitterId, ...body }) => patchGuest(transmitterId, { ...body, entity_type: kind }),
      update: (id, body, options) => call('PATCH', `/api/transmitters/${id}`, { body, ...options }),
      delete: (id) => patchGuest(id, { entity_type: null, entityId: null, carrierName: null, company: null })
    },
    permission: 'transmitters.update',
    name: ({ carrierName, carriedBy, name, id }) => carrierName ?? carriedBy ?? name ?? id,
    detail: ({ company }) => company,
    to: ({ currentFloorId, id }) => planOf({ currentFloorId, transmitterId: id }),
    columns: [
      { title: 'Transmitter', text: ({ name, id }) => name ?? id, sort: 'name' },
      {
        title: 'Status',
        text: ({ currentFloorId }) => (currentFloorId === null ? 'Off site' : 'On site'),
        isWideOnly: true
      }
    ],
    search: 'Search by name or company',
    filters: [{ name: 'currentFloorId', label: 'Floor', options: 'floors' }],
    schema: GuestSchema,
    fields: [
      { name: 'transmitterId', options: 'transmitters', isNewOnly: true },
      { name: 'carrierName', label: 'Name' },
      'company'
    ],
    removal: 'The transmitter is taken back and can be handed out again.'
  })

export const resources = {
  people: define<Person>({
    title: 'Employees',
    nouns: ['person', 'people'],
    calls: {
      ...api.personnel,
      // An empty name is rejected beside the field of the first name.
      create: (body) => api.personnel.create({ ...body, name: personName(body) })
    },
    permission: 'personnel',
    name: personName,
    nameSort: 'name',
    detail: ({ email }) => email,
    to: planOf,
    columns: [
      { title: 'Job title', text: ({ jobTitle }) => jobTitle, sort: 'jobTitle', isWideOnly: true },
      { title: 'Department', text: ({ department }) => department, sort: 'department', isWideOnly: true },
      {
        title: 'Status',
        text: personState,
        tone: (person) => (personState(person) === 'On site' ? 'good' : ''),
        isWideOnly: true
      }
    ],
    search: 'Search by name, e-mail address or job title',
    filters: [
      { name: 'departmentId', label: 'Department', options: 'departments' },
      { name: 'isActive', label: 'Status', options: titled({ true: 'Active', false: 'Inactive' }) },
      { name: 'isOnSite', label: 'Presence', options: PRESENCE },
      { name: 'currentFloorId', label: 'Floor', options: 'floors' }
    ],
    exports: { CSV: api.personnel.export.csv, PDF: api.personnel.export.pdf },
    schema: PersonnelCreateSchema,
    fields: [
      ...['firstName', 'lastName', 'email', 'phone', 'jobTitle'],
      { name: 'departmentId', options: 'departments', isOptional: true },
      { name: 'transmitterId', options: 'transmitters', isOptional: true },
      ...['notes', { name: 'isActive', initial: true }, 'isFirstAider', 'isFireWarden']
    ],
    hasPhoto: true
  }),
  visitors: guests('visitor'),
  contractors: guests('contractor'),
  assets: define<Asset>({
    title: 'Assets',
    nouns: ['asset', 'assets'],
    calls: api.assets,
    permission: 'assets',
    name: ({ name }) => name,
    nameSort: 'name',
    detail: ({ assetTag }) => assetTag,
    to: planOf,
    columns: [
      { title: 'Category', text: ({ category }) => capitalized(category), sort: 'category', isWideOnly: true },
      {
        title: 'Status',
        text: ({ status }) => capitalized(status),
        tone: ({ status }) => (status === 'in use' ? 'good' : ''),
        sort: 'status'
      },
      { title: 'Floor', text: ({ currentFloorId }) => currentFloorId, lookup: 'floors', isWideOnly: true },
      { title: 'Transmitter', text: ({ transmitterId }) => transmitterId, sort: 'transmitterId', isWideOnly: true }
    ],
    search: 'Search by name, tag, type or category',
    filters: [
      { name: 'status', label: 'Status', options: ASSET_STATUSES },
      { name: 'currentFloorId', label: 'Floor', options: 'floors' },
      { name: 'isOnSite', label: 'Presence', options: PRESENCE }
    ],
    exports: { CSV: (options) => call('GET', '/api/assets/export/csv', { ...options, as: 'file' }) },
    schema: AssetCreateSchema,
    fields: [
      ...['name', 'assetTag', 'type', 'category'],
      { name: 'status', initial: 'in use', options: ASSET_STATUSES },
      { name: 'floorId', label: 'Home floor', options: 'floors', isOptional: true },
      { name: 'transmitterId', options: 'transmitters', isOptional: true },
      'description'
    ]
  }),
  alerts: define<Alert>({
    title: 'Alerts',
    nouns: ['alert', 'alerts'],
    calls: { list: (options) => call('GET', '/api/alerts', options) },
    permission: 'alerts',
    name: ({ name }) => name,
    nameTitle: 'Name',
    nameSort: 'name',
    detail: ({ zoneName, floorName, buildingName }) =>
      [zoneName, floorName, buildingName].filter(Boolean).join(', ') || 'No position',
    to: alertPlace,
    columns: [
      {
        title: 'Severity',
        text: ({ severity }) => SEVERITY_TITLES[severity],
        tone: ({ severity }) => SEVERITY_TONES[severity]
      },
      { title: 'Kind', text: ({ kind }) => ALERT_TITLES[kind], sort: 'kind' },
      { title: 'Since', text: ({ since }) => dateTimeText(since), sort: 'since', isNumber: true },
      { title: 'State', text: alertState, sort: 'acknowledgedAt', isNumber: true }
    ],
    search: 'Search by name or place',
    filters: [
      { name: 'severity', label: 'Severity', options: titled(SEVERITY_TITLES) },
      { name: 'kind', label: 'Kind', options: titled(ALERT_TITLES) },
      { name: 'state', label: 'State', options: words('open', 'acknowledged') },
      { name: 'floorId', label: 'Floor', options: 'floors' }
    ],
    tasks: (alert, may) => (alert.state === 'open' && may('alerts.update') ? [acknowledging(alert)] : []),
    updates: () => alertCounts.value
  }),
  buildings: define<Building>({
    title: 'Buildings',
    nouns: ['building', 'buildings'],
    calls: api.buildings,
    permission: 'buildings',
    name: ({ name }) => name,
    nameSort: 'name',
    detail: ({ address, postalCode, city, country }) =>
      [address, [postalCode, city].filter(Boolean).join(' '), country].filter(Boolean).join(', '),
    columns: [
      { title: 'Short name', text: ({ code }) => code, sort: 'code', isWideOnly: true },
      { title: 'Floors', text: ({ floorCount }) => counted(floorCount, 'floor'), sort: 'floorCount', isNumber: true },
      { title: 'Description', text: ({ description }) => description, isWideOnly: true }
    ],
    search: 'Search by name, short name or city',
    schema: BuildingCreateSchema,
    fields: [
      'name',
      { name: 'code', label: 'Short name' },
      { name: 'address', label: 'Street' },
      ...['postalCode', 'city', 'country', { name: 'displayOrder', label: 'Position in lists' }, 'description']
    ],
    removal: 'Its floors, zones and receivers are deleted too.'
  }),
  floors: define<FloorRecord>({
    title: 'Floor plans',
    nouns: ['floor', 'floors'],
    calls: { ...api.floors, list: (options) => call('GET', '/api/floors', options) },
    permission: 'floors',
    name: ({ name }) => name,
    nameSort: 'name',
    to: ({ id }) => `/floors/${id}`,
    columns: [
      { title: 'Building', text: ({ buildingId }) => String(buildingId), lookup: 'buildings' },
      { title: 'Level', text: ({ level }) => level, sort: 'level', isWideOnly: true },
      {
        title: 'Size',
        text: ({ width, height }) => (width && height ? `${width} × ${height} m` : 'Not set'),
        isWideOnly: true
      },
      {
        title: 'Plan image',
        text: ({ planImage, calibratedAt }) =>
          planImage === null ? 'No image' : calibratedAt ? 'Calibrated' : 'Not calibrated',
        tone: ({ planImage, calibratedAt }) => (planImage === null ? '' : calibratedAt ? 'good' : 'warning')
      }
    ],
    search: 'Search by name',
    filters: [{ name: 'buildingId', label: 'Building', options: 'buildings' }],
    schema: FloorCreateSchema,
    fields: [
      'name',
      { name: 'buildingId', options: 'buildings' },
      ...['level', { name: 'width', label: 'Width (m)' }, { name: 'height', label: 'Depth (m)' }, 'description']
    ],
    removal: 'Its zones and receivers are deleted too.'
  }),
  zones: define<Zone>({
    title: 'Zones',
    nouns: ['zone', 'zones'],
    calls: api.zones,
    permission: 'zones',
    name: ({ name }) => name,
    nameSort: 'name',
    detail: ({ type }) => capitalized(type),
    to: ({ id, floorId }) => (floorId == null ? null : liveLink({ floorId: String(floorId), zoneId: id })),
    columns: [
      { title: 'Floor', text: ({ floorId }) => String(floorId), lookup: 'floors', sort: 'floorId' },
      {
        title: 'Occupancy',
        text: ({ occupancy, capacity }) => (typeof capacity === 'number' ? `${occupancy} of ${capacity}` : occupancy),
        tone: ({ occupancy, capacity }) => (typeof capacity === 'number' && occupancy > capacity ? 'danger' : ''),
        sort: 'occupancy',
        isNumber: true
      },
      {
        title: 'Properties',
        text: ({ isRestricted, isMusterPoint, isExit }) =>
          [isRestricted && 'Restricted', isMusterPoint && 'Muster point', isExit && 'Exit'].filter(Boolean).join(', '),
        isWideOnly: true
      }
    ],
    search: 'Search by name or type',
    filters: [{ name: 'floorId', label: 'Floor', options: 'floors' }],
    link: ({ id, name }) => ({
      icon: 'area',
      title: `Area of ${name}`,
      to: `/zones/${id}/area`,
      permission: 'zones.update'
    }),
    schema: ZoneCreateSchema,
    fields: [
      ...['name', 'type', { name: 'floorId', options: 'floors' } as const],
      { name: 'capacity', hint: 'More people than this are an alert.' },
      'description',
      { name: 'isMusterPoint', label: 'Muster point' },
      { name: 'isExit', label: 'Exit' },
      { name: 'isRestricted', label: 'Restricted', hint: 'People in the zone are an alert.' }
    ]
  }),
  receivers: define<Receiver>({
    title: 'Receivers',
    nouns: ['receiver', 'receivers'],
    calls: api.receivers,
    permission: 'receivers',
    name: ({ name, id }) => name ?? id,
    nameSort: 'name',
    detail: ({ macAddress }) => macAddress,
    to: ({ id, floorId }) => (floorId == null ? null : liveLink({ floorId: String(floorId), receiverId: id })),
    columns: [
      {
        title: 'Status',
        text: ({ status }) => capitalized(status),
        tone: ({ status }) => (status === 'online' ? 'good' : 'danger'),
        sort: 'status'
      },
      { title: 'Floor', text: ({ floorId }) => String(floorId), lookup: 'floors', sort: 'floorId' },
      {
        title: 'Last report',
        text: ({ lastSeenAt }) => dateTimeText(lastSeenAt),
        sort: 'lastSeenAt',
        isNumber: true,
        isWideOnly: true
      },
      { title: 'Model', text: ({ model }) => model, sort: 'model', isWideOnly: true }
    ],
    search: 'Search by name or hardware address',
    filters: [
      { name: 'floorId', label: 'Floor', options: 'floors' },
      { name: 'status', label: 'Status', options: words('online', 'offline') }
    ],
    schema: ReceiverUpdateSchema,
    fields: [
      ...['name', 'macAddress', 'model', 'firmwareVersion', { name: 'floorId', options: 'floors' } as const],
      ...['txPower', 'pathLossExponent']
    ]
  }),
  transmitters: define<Transmitter>({
    title: 'Transmitters',
    nouns: ['transmitter', 'transmitters'],
    // Unlike PUT, PATCH keeps the fields that the form does not have.
    calls: { list: api.transmitters.list, create: api.transmitters.create, update: api.transmitters.patch },
    permission: 'transmitters',
    name: ({ name, id }) => name ?? id,
    nameSort: 'name',
    detail: ({ id }) => id,
    to: ({ currentFloorId, id }) => planOf({ currentFloorId, transmitterId: id }),
    columns: [
      { title: 'Carried by', text: ({ carriedBy }) => carriedBy, sort: 'carriedBy' },
      { title: 'Kind', text: ({ entity_type }) => capitalized(entity_type), sort: 'entity_type', isWideOnly: true },
      {
        title: 'Battery',
        text: ({ batteryLevel }) => (typeof batteryLevel === 'number' ? `${Math.round(batteryLevel)} %` : '–'),
        tone: ({ batteryState }) => (batteryState === null ? '' : BATTERY_TONES[batteryState]),
        sort: 'batteryLevel',
        isNumber: true
      },
      { title: 'Address', text: ({ macAddress }) => macAddress, sort: 'macAddress', isWideOnly: true }
    ],
    search: 'Search by name or hardware address',
    filters: [
      { name: 'entity_type', label: 'Kind', options: words('employee', 'visitor', 'contractor', 'asset') },
      { name: 'batteryState', label: 'Battery', options: words(...Object.keys(BATTERY_TONES)) },
      { name: 'currentFloorId', label: 'Floor', options: 'floors' }
    ],
    schema: TransmitterPatchSchema,
    fields: ['name', 'macAddress', 'model', 'serialNumber', { name: 'isActive', label: 'In use', initial: true }]
  }),
  departments: define<Department>({
    title: 'Departments',
    nouns: ['department', 'departments'],
    calls: api.mgmt.departments,
    permission: 'departments',
    name: ({ name }) => name,
    nameSort: 'name',
    detail: ({ description }) => description,
    columns: [
      { title: 'Short name', text: ({ code }) => code, sort: 'code' },
      { title: 'E-mail address', text: ({ email }) => email, isWideOnly: true },
      { title: 'Phone', text: ({ phone }) => phone, isWideOnly: true }
    ],
    search: 'Search by name or short name',
    schema: DepartmentCreateSchema,
    fields: ['name', { name: 'code', label: 'Short name' }, 'email', 'phone', 'color', 'description'],
    removal: 'Its people stay, without a department.'
  }),
  users: define<User>({
    title: 'Users',
    nouns: ['user', 'users'],
    calls: api.users,
    permission: 'admin.users',
    name: ({ email }) => email,
    nameSort: 'email',
    detail: ({ displayName }) => displayName,
    columns: [
      { title: 'Role', text: ({ role }) => capitalized(role), sort: 'role', isWideOnly: true },
      { title: 'Status', text: userState, tone: (user) => USER_TONES[userState(user)], isWideOnly: true },
      {
        title: 'Last sign-in',
        text: ({ lastLoginAt }) => dateTimeText(lastLoginAt),
        sort: 'lastLoginAt',
        isNumber: true,
        isWideOnly: true
      }
    ],
    search: 'Search by name or e-mail address',
    filters: [{ name: 'role', label: 'Role', options: 'roles' }],
    schema: UserCreateSchema,
    fields: [
      'email',
      { name: 'displayName', label: 'Name' },
      { name: 'role', initial: 'viewer', options: 'roles' },
      { name: 'password', label: 'Initial password', isNewOnly: true },
      { name: 'isActive', label: 'Can sign in', initial: true },
      { name: 'mustChangePassword', label: 'Must change password at next sign-in', initial: true }
    ],
    removal: 'Its sessions end immediately.',
    tasks: (user) => [
      ...(userState(user) === 'Locked' ? [unlocking(user)] : []),
      // Resetting the own password would end the session.
      ...(user.email === session.state.user?.email ? [] : [resetting(user)])
    ]
  }),
  contacts: define<Contact>({
    title: 'Emergency contacts',
    nouns: ['contact', 'contacts'],
    calls: api.emergency.contacts,
    permission: 'emergency',
    name: ({ name }) => name,
    nameSort: 'name',
    detail: ({ role, organization }) => [role, organization].filter(Boolean).join(', '),
    columns: [
      { title: 'Phone', text: ({ phone, mobile }) => phone ?? mobile },
      { title: 'E-mail address', text: ({ email }) => email, isWideOnly: true },
      { title: 'Priority', text: ({ priority }) => priority, sort: 'priority', isNumber: true, isWideOnly: true }
    ],
    search: 'Search by name or role',
    schema: EmergencyContactCreateSchema,
    fields: ['name', 'role', 'organization', 'phone', 'mobile', 'email', 'priority', 'notes']
  }),
  past: define<Emergency>({
    title: 'Past emergencies',
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
    to: ({ id }) => `/emergency/${id}`,
    columns: [
      { title: 'Kind', text: kindOf, tone: ({ isDrill }) => (isDrill ? 'warning' : 'danger') },
      { title: 'Building', text: ({ buildingName }) => buildingName ?? 'Entire site' },
      { title: 'Started', text: ({ startedAt }) => dateTimeText(startedAt), sort: 'startedAt', isNumber: true },
      {
        title: 'Duration',
        text: ({ startedAt, resolvedAt }) =>
          startedAt && resolvedAt ? lastingText(Date.parse(String(resolvedAt)) - Date.parse(startedAt)) : null,
        isWideOnly: true
      },
      { title: 'Muster', text: ({ muster }) => muster && `${muster.safe} of ${muster.total} safe` },
      { title: 'Outcome', text: outcomeOf }
    ],
    updates: () => activeEmergencyIds.value
  }),
  audit: define<AuditRow>({
    title: 'Audit log',
    nouns: ['entry', 'entries'],
    calls: { list: api.audit.logs },
    permission: 'audit',
    nameTitle: 'Action',
    name: ({ action }) => action,
    nameSort: 'action',
    detail: ({ subject }) => subject,
    columns: [
      { title: 'Time', text: ({ at }) => dateTimeText(at), sort: 'at', isNumber: true },
      { title: 'User', text: ({ userName, account }) => userName ?? account, sort: 'account' },
      { title: 'Address', text: ({ ip }) => ip, sort: 'ip', isWideOnly: true },
      { title: 'Path', text: ({ method, path }) => [method, path].filter(Boolean).join(' '), isWideOnly: true },
      {
        title: 'Result',
        text: ({ result }) => capitalized(result),
        tone: ({ result }) => RESULT_TONES[result],
        sort: 'result'
      }
    ],
    search: 'Search the log',
    filters: [
      { name: 'result', label: 'Result', options: words(...Object.keys(RESULT_TONES)) },
      { name: 'from', label: 'From', options: 'time' },
      { name: 'to', label: 'To', options: 'time' }
    ],
    exports: { CSV: api.audit.export }
  })
}
export type ResourceName = keyof typeof resources
