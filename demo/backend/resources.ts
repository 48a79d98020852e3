import { type Columns, columnsOf, sqlName } from './database/columns.js'
import { declared } from './declared.js'
import type { Listed } from './lists.js'

/**
 * One kind of thing that the API lists, shows, creates, changes and deletes. All of them are served by one piece of code;
 * what sets them apart stands here. It is written to a table, and read from a view that adds what is worked out.
 */
export interface Resource extends Required<Listed> {
  /** Of the list, and of one of them. */
  readonly path: `/api/${string}`
  readonly onePath: `/api/${string}`
  readonly table: string
  /** What one of them is called, to people. */
  readonly noun: string
  /** The first half of its permissions, or one that is asked for whatever is done. */
  readonly permission: string
  readonly columns: Columns
  /** What SQL says of a column that names a row of another table. */
  readonly references: Readonly<Record<string, string>>
  /** Fields that are worked out while reading: SQL that may name the table. A body cannot set them. */
  readonly computed: Readonly<Record<string, string>>
}

type Usual = 'onePath' | 'table' | 'permission' | 'search' | 'order' | 'computed'

interface Description extends Partial<Pick<Resource, Usual>> {
  /** The route whose body has a field for each column, where it is not the one that changes one of them. */
  readonly bodyOf?: string
  /** Fields of that body that are no columns. */
  readonly without?: readonly string[]
  /** Columns that no body sets. */
  readonly more?: Columns
  /** It is deleted along with what these fields name. Of what other fields name it forgets, when that is deleted. */
  readonly partOf?: readonly string[]
}

/** Which table a field names a row of. */
const TARGETS = new Map(
  Object.entries({
    buildingId: 'buildings',
    floorId: 'floors',
    zoneId: 'zones',
    musterZoneId: 'zones',
    zoneTypeId: 'zone_types',
    gatewayId: 'gateways',
    departmentId: 'departments',
    parentId: 'departments',
    personnelId: 'personnel',
    ownerId: 'personnel',
    'users.role': 'roles'
  })
)

const resource = (path: Resource['path'], noun: string, description: Description = {}): Resource => {
  const { onePath = `${path}/:id`, bodyOf = `PUT ${onePath}`, search = ['name'], order = 'name' } = description
  const { permission = path.split('/').at(-1) ?? '', table = permission.replace('-', '_') } = description
  const { without = [], more = {}, partOf = [], computed = {} } = description
  const left = new Set([...without, ...Object.keys(computed)])
  const sent = Object.entries(columnsOf(declared.get(bodyOf)?.body)).filter(([field]) => !left.has(field))
  const columns = { ...Object.fromEntries(sent), ...more }
  const referenceOf = (field: string): string => {
    const target = TARGETS.get(field) ?? TARGETS.get(`${table}.${field}`)
    return target ? `REFERENCES ${target} ON DELETE ${partOf.includes(field) ? 'CASCADE' : 'SET NULL'}` : ''
  }
  const references = Object.fromEntries(Object.keys(columns).map((field) => [field, referenceOf(field)]))
  const fields = ['id', ...Object.keys(columns), ...Object.keys(computed), 'createdAt', 'updatedAt']
  const reading = { from: `${table}_shown`, fields, search, order: `${sqlName(order)}, id` }
  return { path, onePath, table, noun, permission, columns, references, computed, ...reading }
}

export const buildings = resource('/api/buildings', 'building', {
  computed: { floorCount: '(SELECT count(*)::int FROM floors f WHERE f.building_id = buildings.id)' },
  search: ['name', 'code', 'city'],
  order: 'displayOrder'
})

export const floors = resource('/api/floors', 'floor', {
  more: { origin: 'jsonb', walls: 'jsonb', doors: 'jsonb' },
  partOf: ['buildingId'],
  computed: {
    imageUrl: "'/api/floors/' || floors.id || '/plan'",
    /** When a plan was uploaded. */
    imageAt: "(SELECT updated_at FROM files WHERE files.owner = 'floors/' || floors.id)"
  },
  order: 'displayOrder'
})

export const zoneTypes = resource('/api/mgmt/zone-types', 'zone type', {
  search: ['name', 'code'],
  order: 'displayOrder'
})

export const zones = resource('/api/zones', 'zone', {
  partOf: ['buildingId', 'floorId'],
  computed: { occupancy: '(SELECT count(*)::int FROM positions p WHERE p.zone_id = zones.id)' },
  search: ['name', 'type']
})

export const gateways = resource('/api/gateways', 'gateway', {
  bodyOf: 'POST /api/gateways/sync-status',
  without: ['gatewayId', 'gatewayIds', 'gateways'],
  more: { name: 'text', buildingId: 'text' },
  partOf: ['buildingId'],
  order: 'id'
})

export const receivers = resource('/api/receivers', 'receiver', {
  partOf: ['buildingId', 'floorId'],
  search: ['name', 'macAddress']
})

export const departments = resource('/api/mgmt/departments', 'department', {
  search: ['name', 'code']
})

/** About the transmitter of a person or a thing. Those who carry one as an employee are personnel, and nobody else is. */
const ofCarried = (column: string, entityType: 'employee' | 'asset', table: string): string =>
  `(SELECT c.${column} FROM carriers c WHERE c.entity_type = '${entityType}' AND c.entity_id = ${table}.id
    ORDER BY c.transmitter_id LIMIT 1)`

export const personnel = resource('/api/personnel', 'person', {
  computed: {
    department: '(SELECT d.name FROM departments d WHERE d.id = personnel.department_id)',
    transmitterId: ofCarried('transmitter_id', 'employee', 'personnel'),
    currentFloorId: ofCarried('floor_id', 'employee', 'personnel'),
    currentZoneId: ofCarried('zone_id', 'employee', 'personnel'),
    photoUrl: `(SELECT '/api/personnel/' || personnel.id || '/photo' FROM files
      WHERE files.owner = 'personnel/' || personnel.id)`
  },
  search: ['name', 'email', 'jobTitle', 'employeeId']
})

export const assets = resource('/api/assets', 'asset', {
  computed: { transmitterId: ofCarried('transmitter_id', 'asset', 'assets') },
  search: ['name', 'assetTag', 'category']
})

export const transmitters = resource('/api/transmitters', 'transmitter', {
  computed: {
    carriedBy: '(SELECT c.name FROM carriers c WHERE c.transmitter_id = transmitters.id)'
  },
  search: ['name', 'macAddress', 'lastName'],
  order: 'id'
})

export const beacons = resource('/api/mgmt/beacons', 'beacon', {
  search: ['name', 'macAddress']
})

export const emergencies = resource('/api/emergency', 'emergency', {
  table: 'emergencies',
  search: ['title', 'type'],
  order: 'createdAt'
})

export const emergencyContacts = resource('/api/emergency/contacts', 'emergency contact', {
  onePath: '/api/emergency/contacts/:contactId',
  table: 'emergency_contacts',
  permission: 'emergency',
  search: ['name', 'role'],
  order: 'priority'
})

/** What is secret about an account is in a table of its own, so that no list of accounts can ever show it. */
export const users = resource('/api/users', 'user', {
  table: 'users',
  permission: 'admin.users',
  without: ['password', 'roleId'],
  more: { lastLoginAt: 'timestamptz' },
  computed: {
    lockedUntil: '(SELECT c.locked_until FROM credentials c WHERE c.user_id = users.id)',
    failedLogins: '(SELECT c.failures FROM credentials c WHERE c.user_id = users.id)'
  },
  search: ['email', 'displayName', 'name'],
  order: 'email'
})

/** In the order in which they name each other. */
export const resources: readonly Resource[] = [
  ...[buildings, floors, zoneTypes, zones, gateways, receivers, departments, personnel, assets, transmitters, beacons],
  ...[emergencies, emergencyContacts, users]
]
