import type { TSchema } from '@sinclair/typebox'
import { declared } from './declared.js'
import { numberSetting } from './settings.js'

/** The SQL type of each column by its API name. */
export type Columns = Readonly<Record<string, string>>

const SQL_TYPES: Columns = { string: 'text', integer: 'integer', number: 'double precision', boolean: 'boolean' }

/** A column for every field of a shared schema. Fields that may be text or a number, except ids, are stored as JSON. */
export const columnsOf = (schema: TSchema | null | undefined): Columns =>
  Object.fromEntries(
    Object.entries<TSchema>(schema?.properties ?? {}).map(([field, property]) => {
      const [type = '', another] = new Set(typesOf(property))
      if (another !== undefined) return [field, field.endsWith('Id') ? 'text' : 'jsonb']
      return [field, SQL_TYPES[type] ?? 'jsonb']
    })
  )

const typesOf = (schema: TSchema): string[] =>
  Array.isArray(schema.anyOf) ? schema.anyOf.flatMap(typesOf) : schema.type === 'null' ? [] : [String(schema.type)]

/** Converts `floorId` to `floor_id`. Only called with names of our own tables. */
export const sqlName = (field: string): string => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** The source of a list: a table, a view, or a query in brackets. */
export interface Listed {
  readonly from: string
  /** Fields to filter and sort by; with `at`, also by `from` and `to`. */
  readonly fields: readonly string[]
  /** Fields searched by `?search=`. */
  readonly search?: readonly string[]
  /** In SQL. */
  readonly order: string
}

/**
 * A resource that the API lists, reads, creates, updates and deletes. All resources share one implementation. Rows are
 * written to a table, and read from a view that adds computed fields.
 */
export interface Resource extends Required<Listed> {
  /** The paths of the list and of one row. */
  readonly path: `/api/${string}`
  readonly onePath: `/api/${string}`
  readonly table: string
  /** The noun in messages. */
  readonly noun: string
  /** The resource part of its permissions, or one permission for all actions. */
  readonly permission: string
  readonly columns: Columns
  /** Foreign keys by column. */
  readonly references: Readonly<Record<string, string>>
  /** Computed read-only fields as SQL expressions. */
  readonly computed: Readonly<Record<string, string>>
  /** The carrier types of its rows; empty if they carry no transmitters. */
  readonly entityTypes: readonly string[]
}

interface Description
  extends Partial<
    Pick<Resource, 'onePath' | 'table' | 'permission' | 'computed' | 'entityTypes' | 'search' | 'order'>
  > {
  /** The route whose body defines the columns; by default the update route. */
  readonly bodyOf?: string
  /** Fields of that body that are not columns. */
  readonly without?: readonly string[]
  /** Columns that bodies cannot set, and columns of another type than their schema suggests. */
  readonly more?: Columns
  /** Foreign keys that delete the row too (cascade); all others are set to null. */
  readonly partOf?: readonly string[]
}

/** The fields searched by `?search=`. */
const SEARCHED = [
  ...['name', 'displayName', 'lastName', 'title', 'type', 'category', 'code', 'city', 'email', 'role', 'jobTitle'],
  ...['macAddress', 'assetTag', 'employeeId']
]
/** The default order: the first of these fields that the resource has. */
const ORDERS = ['displayOrder', 'priority', 'displayName', 'name', 'createdAt']

/** Foreign keys that do not follow the rule that `floorId` references `floors`. */
const TARGETS: Readonly<Record<string, string>> = {
  musterZoneId: 'zones',
  parentId: 'departments',
  ownerId: 'personnel',
  personnelId: 'personnel',
  // No foreign keys: an alarm must not fail because of an unknown sender.
  'emergencies.personnelId': '',
  'emergencies.transmitterId': '',
  'users.role': 'roles'
}

/** All resources; a resource is defined after those that it references. */
export const resources: Resource[] = []

const resource = (path: Resource['path'], noun: string, description: Description = {}): Resource => {
  const { onePath = `${path}/:id`, bodyOf = `PUT ${onePath}`, computed = {}, entityTypes = [] } = description
  const { permission = path.split('/').at(-1) ?? '', table = permission.replace('-', '_') } = description
  const { without = [], more = {}, partOf = [] } = description
  const left = new Set([...without, ...Object.keys(computed)])
  const sent = Object.entries(columnsOf(declared.get(bodyOf)?.body)).filter(([field]) => !left.has(field))
  const columns: Columns = { ...Object.fromEntries(sent), ...more }
  const known = ['roles', table, ...resources.map((other) => other.table)]
  const referenceOf = (field: string): string => {
    const usual = field.endsWith('Id') ? `${sqlName(field.slice(0, -2))}s` : ''
    const target = TARGETS[`${table}.${field}`] ?? TARGETS[field] ?? usual
    const orElse = partOf.includes(field) ? 'CASCADE' : 'SET NULL'
    return known.includes(target) ? `REFERENCES ${target} ON DELETE ${orElse}` : ''
  }
  const references = Object.fromEntries(Object.keys(columns).map((field) => [field, referenceOf(field)]))
  const fields = ['id', ...Object.keys(columns), ...Object.keys(computed), 'createdAt', 'updatedAt', 'version']
  const order = description.order ?? `${sqlName(ORDERS.find((field) => fields.includes(field)) ?? 'id')}, id`
  const search = description.search ?? SEARCHED.filter((field) => columns[field] === 'text')
  const reading = { from: `${table}_shown`, fields, search, order }
  const made = { path, onePath, table, noun, permission, columns, references, computed, entityTypes, ...reading }
  resources.push(made)
  return made
}

export const buildings = resource('/api/buildings', 'building', {
  computed: { floorCount: '(SELECT count(*)::int FROM floors f WHERE f.building_id = buildings.id)' }
})

/**
 * SQL: the uploaded plan and its place on the floor, in metres. It is rotated clockwise about the origin of the floor. The
 * address changes with each upload, so that browsers may cache it.
 */
const PLAN_IMAGE = `(SELECT jsonb_build_object(
    'url', '/api/floors/' || floors.id || '/plan?v=' || (extract(epoch FROM files.updated_at) * 1000)::bigint,
    'x', -coalesce((floors.origin->>'x')::float, 0) / floors.pixels_per_metre,
    'y', -coalesce((floors.origin->>'y')::float, 0) / floors.pixels_per_metre,
    'width', floors.image_width / floors.pixels_per_metre, 'height', floors.image_height / floors.pixels_per_metre,
    'rotation', -coalesce(floors.rotation, 0))
  FROM files WHERE files.owner = 'floors/' || floors.id
    AND floors.image_width > 0 AND floors.image_height > 0 AND floors.pixels_per_metre > 0)`

export const floors = resource('/api/floors', 'floor', {
  more: { origin: 'jsonb', walls: 'jsonb', doors: 'jsonb' },
  partOf: ['buildingId'],
  computed: {
    imageUrl: "'/api/floors/' || floors.id || '/plan'",
    planImage: PLAN_IMAGE
  }
})

export const zoneTypes = resource('/api/mgmt/zone-types', 'zone type')

/** SQL: the number of people whose position `p` matches the condition; assets do not count. */
export const peopleWhere = (condition: string): string =>
  `(SELECT count(*)::int FROM positions p JOIN transmitters t ON t.id = p.transmitter_id
    WHERE t.entity_type <> 'asset' AND ${condition})`

export const zones = resource('/api/zones', 'zone', {
  partOf: ['buildingId', 'floorId'],
  computed: { occupancy: peopleWhere('p.zone_id = zones.id') }
})

export const gateways = resource('/api/gateways', 'gateway', {
  bodyOf: 'POST /api/gateways/sync-status',
  without: ['gatewayId', 'gatewayIds', 'gateways'],
  more: { name: 'text', buildingId: 'text' },
  partOf: ['buildingId']
})

export const receivers = resource('/api/receivers', 'receiver', {
  // The time of the last report.
  more: { lastSeenAt: 'timestamptz' },
  partOf: ['buildingId', 'floorId']
})

export const departments = resource('/api/mgmt/departments', 'department')

/** SQL: a column of the `carriers` row of a person or an asset. */
const ofCarried = (column: string, table: string, entityType: string): string =>
  `(SELECT c.${column} FROM carriers c WHERE c.entity_type = '${entityType}' AND c.entity_id = ${table}.id ORDER BY c.transmitter_id LIMIT 1)`

export const personnel = resource('/api/personnel', 'person', {
  entityTypes: ['employee'],
  computed: {
    department: '(SELECT d.name FROM departments d WHERE d.id = personnel.department_id)',
    transmitterId: ofCarried('transmitter_id', 'personnel', 'employee'),
    currentFloorId: ofCarried('floor_id', 'personnel', 'employee'),
    currentZoneId: ofCarried('zone_id', 'personnel', 'employee'),
    isOnSite: `(${ofCarried('floor_id', 'personnel', 'employee')} IS NOT NULL)`,
    photoUrl: `(SELECT '/api/personnel/' || personnel.id || '/photo' FROM files
      WHERE files.owner = 'personnel/' || personnel.id)`
  }
})

export const assets = resource('/api/assets', 'asset', {
  entityTypes: ['asset'],
  computed: {
    transmitterId: ofCarried('transmitter_id', 'assets', 'asset'),
    currentFloorId: ofCarried('floor_id', 'assets', 'asset'),
    isOnSite: `(${ofCarried('floor_id', 'assets', 'asset')} IS NOT NULL)`
  }
})

export const transmitters = resource('/api/transmitters', 'transmitter', {
  computed: {
    carriedBy: '(SELECT c.name FROM carriers c WHERE c.transmitter_id = transmitters.id)',
    currentFloorId: '(SELECT p.floor_id FROM positions p WHERE p.transmitter_id = transmitters.id)',
    isOnSite: 'EXISTS (SELECT 1 FROM positions p WHERE p.transmitter_id = transmitters.id)',
    /** Null for a transmitter whose level is unknown. */
    batteryState: `CASE WHEN battery_level <= ${numberSetting('battery', 'critical')} THEN 'critical'
      WHEN battery_level <= ${numberSetting('battery', 'low')} THEN 'low'
      WHEN battery_level <= ${numberSetting('battery', 'warning')} THEN 'warning'
      WHEN battery_level IS NOT NULL THEN 'good' END`
  },
  // Carriers are found by name and kind, visitors and contractors also by company.
  search: ['carriedBy', 'entity_type', 'company', 'name', 'macAddress']
})

export const beacons = resource('/api/mgmt/beacons', 'beacon')

export const emergencies = resource('/api/emergency', 'emergency', {
  table: 'emergencies',
  // How it ended: `ended`, or `mistake` for one that was raised by mistake.
  more: { outcome: 'text' },
  computed: { buildingName: '(SELECT b.name FROM buildings b WHERE b.id = emergencies.building_id)' }
})

export const emergencyContacts = resource('/api/emergency/contacts', 'emergency contact', {
  onePath: '/api/emergency/contacts/:contactId',
  table: 'emergency_contacts',
  permission: 'emergency'
})

/** Credentials are in a separate table, so that no account list can expose them. */
export const users = resource('/api/users', 'user', {
  table: 'users',
  permission: 'admin.users',
  without: ['password', 'roleId'],
  more: { lastLoginAt: 'timestamptz' },
  computed: {
    lockedUntil: '(SELECT c.locked_until FROM credentials c WHERE c.user_id = users.id)',
    failedLogins: '(SELECT c.failures FROM credentials c WHERE c.user_id = users.id)'
  }
})
