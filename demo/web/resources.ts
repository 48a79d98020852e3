import { Type } from '@sinclair/typebox'
import type { CallOptions } from 'gatehouse-client'
import { AssetCreateSchema } from '../../schemas/assets.js'
import { BuildingCreateSchema } from '../../schemas/buildings.js'
import { FloorCreateSchema } from '../../schemas/floors.js'
import { DepartmentCreateSchema } from '../../schemas/management.js'
import { PersonnelCreateSchema } from '../../schemas/personnel.js'
import { ReceiverUpdateSchema } from '../../schemas/receivers.js'
import { TransmitterPatchSchema } from '../../schemas/transmitters.js'
import { UserCreateSchema } from '../../schemas/users.js'
import { ZoneCreateSchema } from '../../schemas/zones.js'
import { capitalized, counted, dateTimeText } from '../../src/ui/format.js'
import { eventResources } from './event-resources.js'
import { liveLink } from './live-link.js'
import { define, figure, shown, state, titled, words } from './resource.js'
import { api, call } from './services.js'
import type { Asset, Building, Department, FloorRecord, Person, Receiver, Transmitter, User, Zone } from './types.js'

// Every resource that the page lists and edits: one entry each, shown by one list and one form.

const PRESENCE = titled({ true: 'On site', false: 'Off site' })
const ASSET_STATUSES = words('in use', 'in repair', 'in storage')

const ON_FLOOR = { name: 'currentFloorId', label: 'Floor', options: 'floors' } as const
const OF_FLOOR = { name: 'floorId', options: 'floors' } as const

/** The place of a carrier on the live plan. */
const planOf = ({ currentFloorId: floorId, transmitterId }: Pick<Asset, 'currentFloorId' | 'transmitterId'>) =>
  floorId !== null && transmitterId !== null ? liveLink({ floorId, transmitterId }) : null
const personName = ({ firstName, lastName, name }: Pick<Person, 'firstName' | 'lastName' | 'name'>): string =>
  [firstName, lastName].filter(Boolean).join(' ') || (name ?? '')
const personState = ({ isActive, currentFloorId }: Person): string =>
  isActive === false ? 'Inactive' : currentFloorId ? 'On site' : 'Off site'

const userState = ({ lockedUntil, isActive }: User): string => {
  if (lockedUntil !== null && Date.parse(lockedUntil) > Date.now()) return 'Locked'
  return isActive === false ? 'Inactive' : 'Active'
}
/** Visitors and contractors are transmitters that are handed out, so they begin and end with one. */
const { firstName, lastName, company } = TransmitterPatchSchema.properties
const GuestSchema = Type.Object(
  { transmitterId: Type.String({ minLength: 1 }), firstName, lastName, company },
  { title: 'Guest' }
)
const patchGuest = (id: unknown, body: object) => api.transmitters.patch(String(id), body)
const guests = (kind: 'visitor' | 'contractor') =>
  define<Transmitter>({
    nouns: [kind, `${kind}s`],
    calls: {
      list: ({ query, ...options }: CallOptions) =>
        api.transmitters.list({ ...options, query: { ...query, entity_type: kind } }),
      create: ({ transmitterId, ...body }) => patchGuest(transmitterId, { ...body, entity_type: kind }),
      update: (id, body, options) => call('PATCH', `/api/transmitters/${id}`, { body, ...options }),
      delete: (id) => patchGuest(id, { entity_type: null, entityId: null })
    },
    permission: 'transmitters.update',
    name: ({ firstName: first, lastName: last, carriedBy, id }) =>
      [first, last].filter(Boolean).join(' ') || (carriedBy ?? id),
    nameSort: 'carriedBy',
    detail: ({ company: from }) => from,
    to: ({ currentFloorId, id }) => planOf({ currentFloorId, transmitterId: id }),
    columns: [
      shown('Transmitter', ({ name, id }) => name ?? id, 'name'),
      shown('Status', ({ currentFloorId }) => (currentFloorId === null ? 'Off site' : 'On site'))
    ],
    filters: [ON_FLOOR],
    schema: GuestSchema,
    fields: [
      { name: 'transmitterId', options: 'transmitters', isNewOnly: true },
      ...['firstName', 'lastName', 'company']
    ],
    removal: 'The transmitter is taken back and can be handed out again.'
  })

export const resources = {
  ...eventResources,
  people: define<Person>({
    nouns: ['person', 'people'],
    calls: {
      ...api.personnel,
      // An empty name is rejected beside the field of the first name.
      create: (body) => api.personnel.create({ ...body, name: personName(body) })
    },
    permission: 'personnel',
    name: personName,
    detail: ({ email }) => email,
    to: planOf,
    columns: [
      shown('Job title', ({ jobTitle }) => jobTitle, 'jobTitle'),
      shown('Department', ({ department }) => department, 'department'),
      state('Status', personState)
    ],
    filters: [
      { name: 'departmentId', label: 'Department', options: 'departments' },
      { name: 'isOnSite', label: 'Presence', options: PRESENCE },
      ON_FLOOR
    ],
    exports: { CSV: api.personnel.export.csv, PDF: api.personnel.export.pdf },
    schema: PersonnelCreateSchema,
    fields: [
      ...['firstName', 'lastName', 'email', 'phone', 'jobTitle'],
      { name: 'departmentId', options: 'departments', isOptional: true },
      { name: 'transmitterId', options: 'transmitters', isOptional: true },
      ...['notes', { name: 'isActive', initial: true }, 'isFirstAider', 'isFireWarden']
    ]
  }),
  visitors: guests('visitor'),
  contractors: guests('contractor'),
  assets: define<Asset>({
    nouns: ['asset', 'assets'],
    calls: api.assets,
    permission: 'assets',
    name: ({ name }) => name,
    detail: ({ assetTag }) => assetTag,
    to: planOf,
    columns: [
      shown('Category', ({ category }) => capitalized(category), 'category'),
      state('Status', ({ status }) => capitalized(status), 'status'),
      { title: 'Floor', text: ({ currentFloorId }) => currentFloorId, lookup: 'floors' },
      shown('Transmitter', ({ transmitterId }) => transmitterId, 'transmitterId')
    ],
    filters: [
      { name: 'status', label: 'Status', options: ASSET_STATUSES },
      ON_FLOOR,
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
  buildings: define<Building>({
    nouns: ['building', 'buildings'],
    calls: api.buildings,
    permission: 'buildings',
    name: ({ name }) => name,
    detail: ({ address, postalCode, city, country }) =>
      [address, [postalCode, city].filter(Boolean).join(' '), country].filter(Boolean).join(', '),
    columns: [
      shown('Short name', ({ code }) => code, 'code'),
      figure('Floors', ({ floorCount }) => counted(floorCount, 'floor'), 'floorCount'),
      shown('Description', ({ description }) => description)
    ],
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
    nouns: ['floor', 'floors'],
    calls: { ...api.floors, list: (options) => call('GET', '/api/floors', options) },
    permission: 'floors',
    name: ({ name }) => name,
    to: ({ id }) => `/floors/${id}`,
    columns: [
      { title: 'Building', text: ({ buildingId }) => String(buildingId), lookup: 'buildings' },
      shown('Level', ({ level }) => level, 'level'),
      shown('Size', ({ width, height }) => (width && height ? `${width} × ${height} m` : 'Not set')),
      state('Plan image', ({ planImage, calibratedAt }) =>
        planImage === null ? 'No image' : calibratedAt ? 'Calibrated' : 'Not calibrated'
      )
    ],
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
    nouns: ['zone', 'zones'],
    calls: api.zones,
    permission: 'zones',
    name: ({ name }) => name,
    detail: ({ type }) => capitalized(type),
    to: ({ id, floorId }, may) => {
      if (may('zones.update')) return `/zones/${id}/area`
      return floorId == null ? null : liveLink({ floorId: String(floorId), zoneId: id })
    },
    columns: [
      { title: 'Floor', text: ({ floorId }) => String(floorId), lookup: 'floors', sort: 'floorId' },
      figure(
        'Occupancy',
        ({ occupancy, capacity }) => (typeof capacity === 'number' ? `${occupancy} of ${capacity}` : occupancy),
        'occupancy'
      ),
      shown('Properties', ({ isRestricted, isMusterPoint, isExit }) =>
        [isRestricted && 'Restricted', isMusterPoint && 'Muster point', isExit && 'Exit'].filter(Boolean).join(', ')
      )
    ],
    filters: [{ ...OF_FLOOR, label: 'Floor' }],
    schema: ZoneCreateSchema,
    fields: [
      ...['name', 'type', OF_FLOOR],
      { name: 'capacity', hint: 'More people than this are an alert.' },
      'description',
      { name: 'isMusterPoint', label: 'Muster point' },
      { name: 'isExit', label: 'Exit' },
      { name: 'isRestricted', label: 'Restricted', hint: 'People in the zone are an alert.' }
    ]
  }),
  receivers: define<Receiver>({
    nouns: ['receiver', 'receivers'],
    calls: api.receivers,
    permission: 'receivers',
    name: ({ name, id }) => name ?? id,
    detail: ({ macAddress }) => macAddress,
    to: ({ id, floorId }) => (floorId == null ? null : liveLink({ floorId: String(floorId), receiverId: id })),
    columns: [
      state('Status', ({ status }) => capitalized(status), 'status'),
      { title: 'Floor', text: ({ floorId }) => String(floorId), lookup: 'floors', sort: 'floorId' },
      figure('Last report', ({ lastSeenAt }) => dateTimeText(lastSeenAt), 'lastSeenAt'),
      shown('Model', ({ model }) => model, 'model')
    ],
    filters: [
      { ...OF_FLOOR, label: 'Floor' },
      { name: 'status', label: 'Status', options: words('online', 'offline') }
    ],
    schema: ReceiverUpdateSchema,
    fields: [...['name', 'macAddress', 'model', 'firmwareVersion', OF_FLOOR], ...['txPower', 'pathLossExponent']]
  }),
  transmitters: define<Transmitter>({
    nouns: ['transmitter', 'transmitters'],
    // Unlike PUT, PATCH keeps the fields that the form does not have.
    calls: { list: api.transmitters.list, create: api.transmitters.create, update: api.transmitters.patch },
    permission: 'transmitters',
    name: ({ name, id }) => name ?? id,
    detail: ({ id }) => id,
    to: ({ currentFloorId, id }) => planOf({ currentFloorId, transmitterId: id }),
    columns: [
      shown('Carried by', ({ carriedBy }) => carriedBy, 'carriedBy'),
      shown('Kind', ({ entity_type }) => capitalized(entity_type), 'entity_type'),
      figure(
        'Battery',
        ({ batteryLevel }) => (typeof batteryLevel === 'number' ? `${Math.round(batteryLevel)} %` : null),
        'batteryLevel'
      ),
      state('Battery state', ({ batteryState }) => capitalized(batteryState)),
      shown('Address', ({ macAddress }) => macAddress, 'macAddress')
    ],
    filters: [
      { name: 'entity_type', label: 'Kind', options: words('employee', 'visitor', 'contractor', 'asset') },
      { name: 'batteryState', label: 'Battery', options: words('critical', 'low', 'warning', 'good') },
      ON_FLOOR
    ],
    schema: TransmitterPatchSchema,
    fields: ['name', 'macAddress', 'model', 'serialNumber', { name: 'isActive', label: 'In use', initial: true }]
  }),
  departments: define<Department>({
    nouns: ['department', 'departments'],
    calls: api.mgmt.departments,
    permission: 'departments',
    name: ({ name }) => name,
    detail: ({ description }) => description,
    columns: [
      shown('Short name', ({ code }) => code, 'code'),
      shown('E-mail address', ({ email }) => email),
      shown('Phone', ({ phone }) => phone)
    ],
    schema: DepartmentCreateSchema,
    fields: ['name', { name: 'code', label: 'Short name' }, 'email', 'phone', 'color', 'description'],
    removal: 'Its people stay, without a department.'
  }),
  users: define<User>({
    nouns: ['user', 'users'],
    calls: api.users,
    permission: 'admin.users',
    name: ({ email }) => email,
    nameSort: 'email',
    detail: ({ displayName }) => displayName,
    columns: [
      shown('Role', ({ role }) => capitalized(role), 'role'),
      state('Status', userState),
      figure('Last sign-in', ({ lastLoginAt }) => dateTimeText(lastLoginAt), 'lastLoginAt')
    ],
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
    removal: 'Its sessions end immediately.'
  })
}
export type ResourceName = keyof typeof resources
