import type { TSchema } from '@sinclair/typebox'
import { AssetUpdateSchema } from '../../schemas/assets.js'
import { BuildingUpdateSchema } from '../../schemas/buildings.js'
import { EmergencyContactUpdateSchema, EmergencyUpdateSchema } from '../../schemas/emergency.js'
import { FloorUpdateSchema } from '../../schemas/floors.js'
import { GatewaySyncStatusSchema } from '../../schemas/gateways.js'
import { BeaconUpdateSchema, DepartmentUpdateSchema, ZoneTypeUpdateSchema } from '../../schemas/management.js'
import { PersonnelUpdateSchema } from '../../schemas/personnel.js'
import { ReceiverUpdateSchema } from '../../schemas/receivers.js'
import { TransmitterUpdateSchema } from '../../schemas/transmitters.js'
import { UserUpdateSchema } from '../../schemas/users.js'
import { ZoneUpdateSchema } from '../../schemas/zones.js'
import { type Columns, columnsOf, sqlName } from './database/columns.js'

/**
 * One kind of thing that the API lists, shows, creates, changes and deletes. All of them are served by one piece of code;
 * what sets them apart stands here.
 */
export interface Resource {
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

interface Description extends Pick<Resource, 'search' | 'order'> {
  readonly permission?: string
  /** Its fields are the columns. */
  readonly schema: TSchema
  /** Except for these. */
  readonly without?: readonly string[]
  /** Columns that no body sets. */
  readonly more?: Columns
  /** It is deleted along with what these fields name. */
  readonly partOf?: readonly Reference[]
  /** It forgets what these fields name when that is deleted. */
  readonly names?: readonly Reference[]
  /** Fields that are worked out while reading: SQL that may name the table. A body cannot set them. */
  readonly computed?: Resource['readable']
}

/** Fields that name a row of another table, and which one. */
const TARGETS = {
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
  role: 'roles'
} as const
type Reference = keyof typeof TARGETS

const resource = (table: string, noun: string, description: Description): Resource => {
  const { schema, without = [], more = {}, partOf = [], names = [], computed = {}, search, order } = description
  const left = new Set([...without, ...Object.keys(computed)])
  const fields = Object.entries(columnsOf(schema)).filter(([field]) => !left.has(field))
  const references = (of: readonly Reference[], orElse: string) =>
    Object.fromEntries(of.map((field) => [field, `REFERENCES ${TARGETS[field]} ON DELETE ${orElse}`]))
  const columns = { ...Object.fromEntries(fields), ...more }
  const stored = ['id', ...Object.keys(columns), 'createdAt', 'updatedAt']
  return {
    table,
    noun,
    permission: description.permission ?? table,
    columns,
    references: { ...references(partOf, 'CASCADE'), ...references(names, 'SET NULL') },
    readable: { ...Object.fromEntries(stored.map((field) => [field, `${table}.${sqlName(field)}`])), ...computed },
    search,
    order
  }
}

export const buildings = resource('buildings', 'building', {
  schema: BuildingUpdateSchema,
  computed: { floorCount: '(SELECT count(*)::int FROM floors f WHERE f.building_id = buildings.id)' },
  search: ['name', 'code', 'city'],
  order: 'displayOrder'
})

export const floors = resource('floors', 'floor', {
  schema: FloorUpdateSchema,
  more: { origin: 'jsonb', walls: 'jsonb', doors: 'jsonb' },
  partOf: ['buildingId'],
  computed: {
    imageUrl: "'/api/floors/' || floors.id || '/plan'",
    /** When a plan was uploaded; without one it is drawn. */
    imageAt: "(SELECT updated_at FROM files WHERE files.owner = 'floors/' || floors.id)"
  },
  search: ['name'],
  order: 'displayOrder'
})

export const zoneTypes = resource('zone_types', 'zone type', {
  permission: 'zone-types',
  schema: ZoneTypeUpdateSchema,
  search: ['name', 'code'],
  order: 'displayOrder'
})

export const zones = resource('zones', 'zone', {
  schema: ZoneUpdateSchema,
  partOf: ['buildingId', 'floorId'],
  names: ['zoneTypeId'],
  computed: { occupancy: '(SELECT count(*)::int FROM positions p WHERE p.zone_id = zones.id)' },
  search: ['name', 'type'],
  order: 'name'
})

export const gateways = resource('gateways', 'gateway', {
  schema: GatewaySyncStatusSchema,
  without: ['gatewayId', 'gatewayIds', 'gateways'],
  more: { name: 'text', buildingId: 'text' },
  partOf: ['buildingId'],
  search: ['name'],
  order: 'id'
})

export const receivers = resource('receivers', 'receiver', {
  schema: ReceiverUpdateSchema,
  partOf: ['buildingId', 'floorId'],
  names: ['zoneId', 'gatewayId'],
  search: ['name', 'macAddress'],
  order: 'name'
})

export const departments = resource('departments', 'department', {
  schema: DepartmentUpdateSchema,
  names: ['parentId', 'buildingId'],
  search: ['name', 'code'],
  order: 'name'
})

/** The transmitter of a person: the people are the employees among those who carry one, and nobody else is. */
const EMPLOYEES_OWN = "t.entity_type = 'employee' AND t.entity_id = personnel.id ORDER BY t.id LIMIT 1"
const EMPLOYEES_PLACE = `FROM positions p JOIN transmitters t ON t.id = p.transmitter_id WHERE ${EMPLOYEES_OWN}`

export const personnel = resource('personnel', 'person', {
  schema: PersonnelUpdateSchema,
  names: ['departmentId', 'buildingId', 'floorId'],
  computed: {
    department: '(SELECT d.name FROM departments d WHERE d.id = personnel.department_id)',
    transmitterId: `(SELECT t.id FROM transmitters t WHERE ${EMPLOYEES_OWN})`,
    currentFloorId: `(SELECT p.floor_id ${EMPLOYEES_PLACE})`,
    currentZoneId: `(SELECT p.zone_id ${EMPLOYEES_PLACE})`,
    photoUrl: `(SELECT '/api/personnel/' || personnel.id || '/photo' FROM files
      WHERE files.owner = 'personnel/' || personnel.id)`
  },
  search: ['name', 'email', 'jobTitle', 'employeeId'],
  order: 'name'
})

export const assets = resource('assets', 'asset', {
  schema: AssetUpdateSchema,
  names: ['departmentId', 'ownerId', 'buildingId', 'floorId', 'zoneId'],
  computed: {
    transmitterId: `(SELECT t.id FROM transmitters t WHERE t.entity_type = 'asset' AND t.entity_id = assets.id
      ORDER BY t.id LIMIT 1)`
  },
  search: ['name', 'assetTag', 'category'],
  order: 'name'
})

export const transmitters = resource('transmitters', 'transmitter', {
  schema: TransmitterUpdateSchema,
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

export const beacons = resource('beacons', 'beacon', {
  schema: BeaconUpdateSchema,
  names: ['buildingId', 'floorId', 'zoneId', 'personnelId'],
  search: ['name', 'macAddress'],
  order: 'name'
})

export const emergencies = resource('emergencies', 'emergency', {
  permission: 'emergency',
  schema: EmergencyUpdateSchema,
  names: ['buildingId', 'floorId', 'zoneId', 'musterZoneId'],
  search: ['title', 'type'],
  order: 'createdAt'
})

export const emergencyContacts = resource('emergency_contacts', 'emergency contact', {
  permission: 'emergency',
  schema: EmergencyContactUpdateSchema,
  names: ['buildingId'],
  search: ['name', 'role'],
  order: 'priority'
})

/** What is secret about an account is in a table of its own, so that no list of accounts can ever show it. */
export const users = resource('users', 'user', {
  permission: 'admin.users',
  schema: UserUpdateSchema,
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
