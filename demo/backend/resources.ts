import { type Columns, columnsOf, sqlName } from './database/columns.js'
import { declared } from './declared.js'

/**
 * One kind of thing that the API lists, shows, creates, changes and deletes. All of them are served by one piece of code;
 * what sets them apart stands here.
 */
export interface Resource {
  /** Of the list, and of one of them. */
  readonly path: `/api/${string}`
  readonly onePath: `/api/${string}`
  readonly table: string
  /** What one of them is called, to people. */
  readonly noun: string
  /** The first half of its permissions, or one that is asked for whatever is done. */
  readonly permission: string
  readonly columns: Columns
  /** Of the columns that name a row of another table: what SQL says of that. */
  readonly references: Readonly<Record<string, string>>
  /** Every field that can be read, and its SQL. */
  readonly readable: Readonly<Record<string, string>>
  /** Fields that `?search=` looks into. */
  readonly search: readonly string[]
  readonly order: string
}

interface Description extends Partial<Pick<Resource, 'onePath' | 'table' | 'permission' | 'search' | 'order'>> {
  /** The route whose body has a field for each column, where it is not the one that changes one of them. */
  readonly bodyOf?: string
  /** Fields of that body that are no columns. */
  readonly without?: readonly string[]
  /** Columns that no body sets. */
  readonly more?: Columns
  /** It is deleted along with what these fields name. */
  readonly partOf?: readonly string[]
  /** It forgets what these fields name when that is deleted. */
  readonly names?: readonly string[]
  /** Fields that are worked out while reading: SQL that may name the table. A body cannot set them. */
  readonly computed?: Resource['readable']
}

/** `floorId` names a row of `floors`. These name others. */
const TARGETS: Readonly<Record<string, string>> = {
  musterZoneId: 'zones',
  parentId: 'departments',
  ownerId: 'personnel',
  personnelId: 'personnel',
  role: 'roles'
}
const targetOf = (field: string): string => TARGETS[field] ?? `${sqlName(field.replace(/Id$/, ''))}s`

const resource = (path: Resource['path'], noun: string, description: Description = {}): Resource => {
  const { onePath = `${path}/:id`, bodyOf = `PUT ${onePath}`, search = ['name'], order = 'name' } = description
  const { permission = path.split('/').at(-1) ?? '', table = permission.replace('-', '_') } = description
  const { without = [], more = {}, partOf = [], names = [], computed = {} } = description
  const left = new Set([...without, ...Object.keys(computed)])
  const fields = Object.entries(columnsOf(declared.get(bodyOf)?.body)).filter(([field]) => !left.has(field))
  const columns = { ...Object.fromEntries(fields), ...more }
  const naming = (of: readonly string[], orElse: string) =>
    Object.fromEntries(of.map((field) => [field, `REFERENCES ${targetOf(field)} ON DELETE ${orElse}`]))
  const references = { ...naming(partOf, 'CASCADE'), ...naming(names, 'SET NULL') }
  const stored = ['id', ...Object.keys(columns), 'createdAt', 'updatedAt'].map((field) => [
    field,
    `${table}.${sqlName(field)}`
  ])
  const readable = { ...Object.fromEntries(stored), ...computed }
  return { path, onePath, table, noun, permission, columns, references, readable, search, order }
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
    /** When a plan was uploaded; without one it is drawn. */
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
  names: ['zoneTypeId'],
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
  names: ['zoneId', 'gatewayId'],
  search: ['name', 'macAddress']
})

export const departments = resource('/api/mgmt/departments', 'department', {
  names: ['parentId', 'buildingId'],
  search: ['name', 'code']
})

/** The transmitter of a person: the people are the employees among those who carry one, and nobody else is. */
const EMPLOYEES_OWN = "t.entity_type = 'employee' AND t.entity_id = personnel.id ORDER BY t.id LIMIT 1"
const EMPLOYEES_PLACE = `FROM positions p JOIN transmitters t ON t.id = p.transmitter_id WHERE ${EMPLOYEES_OWN}`

export const personnel = resource('/api/personnel', 'person', {
  names: ['departmentId', 'buildingId', 'floorId'],
  computed: {
    department: '(SELECT d.name FROM departments d WHERE d.id = personnel.department_id)',
    transmitterId: `(SELECT t.id FROM transmitters t WHERE ${EMPLOYEES_OWN})`,
    currentFloorId: `(SELECT p.floor_id ${EMPLOYEES_PLACE})`,
    currentZoneId: `(SELECT p.zone_id ${EMPLOYEES_PLACE})`,
    photoUrl: `(SELECT '/api/personnel/' || personnel.id || '/photo' FROM files
      WHERE files.owner = 'personnel/' || personnel.id)`
  },
  search: ['name', 'email', 'jobTitle', 'employeeId']
})

export const assets = resource('/api/assets', 'asset', {
  names: ['departmentId', 'ownerId', 'buildingId', 'floorId', 'zoneId'],
  computed: {
    transmitterId: `(SELECT t.id FROM transmitters t WHERE t.entity_type = 'asset' AND t.entity_id = assets.id
      ORDER BY t.id LIMIT 1)`
  },
  search: ['name', 'assetTag', 'category']
})

export const transmitters = resource('/api/transmitters', 'transmitter', {
  names: ['departmentId'],
  computed: {
    carriedBy: `CASE transmitters.entity_type
      WHEN 'employee' THEN (SELECT e.name FROM personnel e WHERE e.id = transmitters.entity_id)
      WHEN 'asset' THEN (SELECT a.name FROM assets a WHERE a.id = transmitters.entity_id)
      ELSE nullif(concat_ws(' ', transmitters.first_name, transmitters.last_name), '') END`
  },
  search: ['name', 'macAddress', 'lastName'],
  order: 'id'
})

export const beacons = resource('/api/mgmt/beacons', 'beacon', {
  names: ['buildingId', 'floorId', 'zoneId', 'personnelId'],
  search: ['name', 'macAddress']
})

export const emergencies = resource('/api/emergency', 'emergency', {
  table: 'emergencies',
  names: ['buildingId', 'floorId', 'zoneId', 'musterZoneId'],
  search: ['title', 'type'],
  order: 'createdAt'
})

export const emergencyContacts = resource('/api/emergency/contacts', 'emergency contact', {
  onePath: '/api/emergency/contacts/:contactId',
  table: 'emergency_contacts',
  permission: 'emergency',
  names: ['buildingId'],
  search: ['name', 'role'],
  order: 'priority'
})

/** What is secret about an account is in a table of its own, so that no list of accounts can ever show it. */
export const users = resource('/api/users', 'user', {
  table: 'users',
  permission: 'admin.users',
  without: ['password', 'roleId'],
  more: { lastLoginAt: 'timestamptz' },
  names: ['role', 'departmentId'],
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
