import { type Resource, resources } from '../resources.js'
import type { Statements } from '../world.js'
import { sqlName } from './columns.js'

const ROLES = 'id text PRIMARY KEY, name text, description text, permissions jsonb NOT NULL'

// Tables that are not resources; each is read and written by one route.
const OTHER_TABLES: Readonly<Record<string, string>> = {
  credentials: `user_id text PRIMARY KEY REFERENCES users ON DELETE CASCADE, password_hash text NOT NULL,
    failures integer NOT NULL DEFAULT 0, locked_until timestamptz, generation integer NOT NULL DEFAULT 0`,
  audit_log: `id text PRIMARY KEY, at timestamptz NOT NULL, action text NOT NULL, result text NOT NULL, user_id text,
    user_email text, ip text, method text, path text, details jsonb`,
  positions: `transmitter_id text PRIMARY KEY REFERENCES transmitters ON DELETE CASCADE, floor_id text, zone_id text,
    x double precision, y double precision, accuracy double precision, at timestamptz NOT NULL`,
  position_history: `transmitter_id text NOT NULL REFERENCES transmitters ON DELETE CASCADE, floor_id text, zone_id text,
    x double precision, y double precision, at timestamptz NOT NULL`,
  occupancy_history: `floor_id text NOT NULL REFERENCES floors ON DELETE CASCADE, entity_type text NOT NULL,
    at timestamptz NOT NULL, carriers integer NOT NULL, PRIMARY KEY (at, floor_id, entity_type)`,
  battery_readings: `device_id text NOT NULL REFERENCES transmitters ON DELETE CASCADE, level double precision,
    at timestamptz NOT NULL`,
  settings: 'name text PRIMARY KEY, value jsonb NOT NULL, updated_at timestamptz NOT NULL',
  files: `owner text PRIMARY KEY, media_type text NOT NULL, name text, bytes bytea NOT NULL,
    updated_at timestamptz NOT NULL`,
  discovered_receivers: `mac_address text PRIMARY KEY, model text, rssi integer, building_id text,
    first_heard_at timestamptz NOT NULL`,
  safe_marks: `emergency_id text NOT NULL REFERENCES emergencies ON DELETE CASCADE,
    transmitter_id text NOT NULL REFERENCES transmitters ON DELETE CASCADE, user_name text NOT NULL,
    at timestamptz NOT NULL, PRIMARY KEY (emergency_id, transmitter_id)`,
  emergency_instructions: `building_id text PRIMARY KEY REFERENCES buildings ON DELETE CASCADE, value jsonb NOT NULL,
    updated_at timestamptz NOT NULL`,
  // Without a reference to the transmitter: the report of an emergency keeps everybody.
  roll_calls: `emergency_id text NOT NULL REFERENCES emergencies ON DELETE CASCADE, transmitter_id text NOT NULL,
    name text NOT NULL, kind text NOT NULL, company text, department text, place text, last_seen_at timestamptz,
    status text NOT NULL, marked_by text, safe_at timestamptz, PRIMARY KEY (emergency_id, transmitter_id)`,
  alerts: `id text PRIMARY KEY, key text NOT NULL UNIQUE, kind text NOT NULL,
    transmitter_id text REFERENCES transmitters ON DELETE CASCADE, receiver_id text REFERENCES receivers ON DELETE CASCADE,
    zone_id text REFERENCES zones ON DELETE CASCADE, since timestamptz NOT NULL, ended_at timestamptz,
    acknowledged_by text, acknowledged_at timestamptz`,
  channel_secrets: `channel_id text PRIMARY KEY REFERENCES notification_channels ON DELETE CASCADE, secret text NOT NULL`,
  // The names stay after the channel and the alerts are gone.
  deliveries: `id text PRIMARY KEY, channel_id text REFERENCES notification_channels ON DELETE SET NULL,
    channel_name text NOT NULL, event text NOT NULL, subject text NOT NULL, content jsonb NOT NULL, at timestamptz NOT NULL,
    status text NOT NULL, attempts integer NOT NULL DEFAULT 0, next_attempt_at timestamptz, finished_at timestamptz,
    message text`,
  phone_enrollments: `token text PRIMARY KEY, personnel_id text, transmitter_id text, email text,
    expires_at timestamptz NOT NULL, completed_at timestamptz, platform text, device_name text, irk text`
}

/** Counts the changes of a row, so that a form can detect a change by another user. */
const VERSION = 'version integer NOT NULL DEFAULT 1'

/** Columns that were added to these tables since their first version. */
const ADDED_COLUMNS: Readonly<Record<string, readonly string[]>> = {
  alerts: [
    'raised_at timestamptz',
    // The rank of the severity from which the alert has escalated.
    'escalated_from integer',
    'escalated_at timestamptz',
    // The highest severity rank that notification channels have been told.
    'notified_rank integer',
    'assigned_to text REFERENCES users ON DELETE SET NULL',
    'assigned_at timestamptz'
  ],
  settings: [VERSION],
  emergency_instructions: [VERSION],
  roll_calls: ['host text']
}

/** All carriers of transmitters with their home zone and current position. */
const CARRIERS = `SELECT t.id AS transmitter_id, t.entity_type, t.entity_id, t.name AS badge,
    coalesce(e.name, a.name, v.name) AS name, v.company, h.name AS host,
    t.is_active IS NOT FALSE AND e.is_active IS NOT FALSE AS is_active, coalesce(e.floor_id, a.floor_id) AS home_floor_id,
    coalesce(e.is_first_aider, false) AS is_first_aider, d.name AS department, d.color, f.building_id, p.floor_id, p.zone_id, z.name AS zone_name, z.is_muster_point,
    p.x, p.y, p.accuracy, p.at
  FROM transmitters t
  LEFT JOIN personnel e ON t.entity_type = 'employee' AND e.id = t.entity_id
  LEFT JOIN assets a ON t.entity_type = 'asset' AND a.id = t.entity_id
  LEFT JOIN visits v ON t.entity_type = v.kind AND v.id = t.entity_id LEFT JOIN personnel h ON h.id = v.host_id
  LEFT JOIN departments d ON d.id = coalesce(e.department_id, a.department_id, t.department_id)
  LEFT JOIN positions p ON p.transmitter_id = t.id
  LEFT JOIN floors f ON f.id = p.floor_id LEFT JOIN zones z ON z.id = p.zone_id
  WHERE t.entity_type IS NOT NULL`

const INDEXES = [
  'UNIQUE INDEX IF NOT EXISTS users_email ON users (lower(email))',
  'INDEX IF NOT EXISTS audit_log_at ON audit_log (at)',
  'INDEX IF NOT EXISTS position_history_at ON position_history (at)',
  'INDEX IF NOT EXISTS position_history_of ON position_history (transmitter_id, at)',
  'INDEX IF NOT EXISTS position_history_on ON position_history (floor_id, at)',
  'INDEX IF NOT EXISTS deliveries_at ON deliveries (at)',
  'INDEX IF NOT EXISTS battery_readings_of ON battery_readings (device_id, at)'
]

/** Data that earlier versions stored elsewhere. */
const MOVED_DATA = [
  `UPDATE zones SET allowed_department_ids = metadata->'departmentIds', metadata = metadata - 'departmentIds'
   WHERE allowed_department_ids IS NULL AND jsonb_typeof(metadata->'departmentIds') = 'array'`
]

export const createTables = async (database: Statements): Promise<void> => {
  const ofResources = Object.fromEntries(resources.map((resource) => [resource.table, columnsSql(resource)]))
  for (const [table, columns] of Object.entries({ roles: ROLES, ...ofResources, ...OTHER_TABLES }))
    await database.rows(`CREATE TABLE IF NOT EXISTS ${table} (${columns})`)
  // A database of an earlier version gets the columns that were added since.
  for (const { table, columns, references } of resources)
    await database.rows(
      `ALTER TABLE ${table} ${Object.entries(columns)
        .map(([field, type]) => `ADD COLUMN IF NOT EXISTS ${sqlName(field)} ${type} ${references[field]}`)
        .join(', ')}, ADD COLUMN IF NOT EXISTS ${VERSION}`
    )
  for (const [table, columns] of Object.entries(ADDED_COLUMNS))
    await database.rows(
      `ALTER TABLE ${table} ${columns.map((column) => `ADD COLUMN IF NOT EXISTS ${column}`).join(', ')}`
    )
  for (const move of MOVED_DATA) await database.rows(move)
  for (const index of INDEXES) await database.rows(`CREATE ${index}`)
  // Views hold no data, so they are recreated to match the program.
  const ofReading = Object.fromEntries(resources.map((resource) => [resource.from, shownSql(resource)]))
  for (const [view, query] of Object.entries({ carriers: CARRIERS, ...ofReading })) {
    await database.rows(`DROP VIEW IF EXISTS ${view} CASCADE`)
    await database.rows(`CREATE VIEW ${view} AS ${query}`)
  }
}

/** `extra` stores the fields of open bodies that have no column. */
const columnsSql = ({ columns, references }: Resource): string =>
  [
    'id text PRIMARY KEY',
    ...Object.entries(columns).map(([field, type]) => `${sqlName(field)} ${type} ${references[field]}`),
    "extra jsonb NOT NULL DEFAULT '{}'",
    VERSION,
    'created_at timestamptz NOT NULL',
    'updated_at timestamptz NOT NULL'
  ].join(', ')

const shownSql = ({ table, computed }: Resource): string => {
  const more = Object.entries(computed).map(([field, sql]) => `, ${sql} AS ${sqlName(field)}`)
  return `SELECT ${table}.*${more.join('')} FROM ${table}`
}
