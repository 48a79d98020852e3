import { type Resource, resources } from '../resources.js'
import type { Statements } from '../world.js'
import { sqlName } from './columns.js'

const ROLES = { roles: 'id text PRIMARY KEY, name text, description text, permissions jsonb NOT NULL' }

// Tables that are no resources: what they hold is read and written by the one route that it belongs to.
const OTHER_TABLES: Readonly<Record<string, string>> = {
  credentials: `user_id text PRIMARY KEY REFERENCES users ON DELETE CASCADE, password_hash text NOT NULL,
    failures integer NOT NULL DEFAULT 0, locked_until timestamptz, generation integer NOT NULL DEFAULT 0`,
  audit_log: `id text PRIMARY KEY, at timestamptz NOT NULL, action text NOT NULL, result text NOT NULL, user_id text,
    user_email text, ip text, method text, path text, details jsonb`,
  positions: `transmitter_id text PRIMARY KEY REFERENCES transmitters ON DELETE CASCADE, floor_id text, zone_id text,
    x double precision, y double precision, accuracy double precision, at timestamptz NOT NULL`,
  position_history: `transmitter_id text NOT NULL REFERENCES transmitters ON DELETE CASCADE, floor_id text, zone_id text,
    x double precision, y double precision, at timestamptz NOT NULL`,
  battery_readings: `device_id text NOT NULL REFERENCES transmitters ON DELETE CASCADE, level double precision,
    at timestamptz NOT NULL`,
  emergency_events: `id text PRIMARY KEY, emergency_id text REFERENCES emergencies ON DELETE CASCADE, kind text NOT NULL,
    message text, user_email text, at timestamptz NOT NULL`,
  settings: 'name text PRIMARY KEY, value jsonb NOT NULL, updated_at timestamptz NOT NULL',
  files: `owner text PRIMARY KEY, media_type text NOT NULL, name text, bytes bytea NOT NULL,
    updated_at timestamptz NOT NULL`,
  discovered_receivers: `mac_address text PRIMARY KEY, model text, rssi integer, building_id text,
    first_heard_at timestamptz NOT NULL`,
  phone_enrollments: `token text PRIMARY KEY, personnel_id text, transmitter_id text, email text,
    expires_at timestamptz NOT NULL, completed_at timestamptz, platform text, device_name text, irk text`,
  page_errors:
    'id text PRIMARY KEY, at timestamptz NOT NULL, user_id text, message text NOT NULL, report jsonb NOT NULL'
}

const INDEXES = [
  'UNIQUE INDEX IF NOT EXISTS users_email ON users (lower(email))',
  'INDEX IF NOT EXISTS audit_log_at ON audit_log (at)',
  'INDEX IF NOT EXISTS position_history_of ON position_history (transmitter_id, at)',
  'INDEX IF NOT EXISTS battery_readings_of ON battery_readings (device_id, at)'
]

export const createTables = async (database: Statements): Promise<void> => {
  const ofResources = Object.fromEntries(resources.map((resource) => [resource.table, columnsSql(resource)]))
  for (const [table, columns] of Object.entries({ ...ROLES, ...ofResources, ...OTHER_TABLES }))
    await database.rows(`CREATE TABLE IF NOT EXISTS ${table} (${columns})`)
  for (const index of INDEXES) await database.rows(`CREATE ${index}`)
}

/** `extra` keeps the fields of open bodies that have no column. */
const columnsSql = ({ columns, references }: Resource): string =>
  [
    'id text PRIMARY KEY',
    ...Object.entries(columns).map(([field, type]) => `${sqlName(field)} ${type} ${references[field] ?? ''}`),
    "extra jsonb NOT NULL DEFAULT '{}'",
    'created_at timestamptz NOT NULL',
    'updated_at timestamptz NOT NULL'
  ].join(', ')
