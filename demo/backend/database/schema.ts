import { type Resource, resources, sqlName } from '../resources.js'

const ROLES = 'id text PRIMARY KEY, name text, description text, permissions jsonb NOT NULL'

/** Counts the changes of a row, so that a form can detect a change by another user. */
const VERSION = 'version integer NOT NULL DEFAULT 1'

// Tables that are not resources; each is read and written by one route.
const OTHER_TABLES: Readonly<Record<string, string>> = {
  credentials: `user_id text PRIMARY KEY REFERENCES users ON DELETE CASCADE, password_hash text NOT NULL,
    failures integer NOT NULL DEFAULT 0, locked_until timestamptz, generation integer NOT NULL DEFAULT 0`,
  audit_log: `id text PRIMARY KEY, at timestamptz NOT NULL, action text NOT NULL, result text NOT NULL, user_id text,
    user_email text, ip text, method text, path text, details jsonb`,
  positions: `transmitter_id text PRIMARY KEY REFERENCES transmitters ON DELETE CASCADE, floor_id text, zone_id text,
    x double precision, y double precision, accuracy double precision, at timestamptz NOT NULL`,
  settings: `id text PRIMARY KEY, value jsonb NOT NULL, updated_at timestamptz NOT NULL, ${VERSION}`,
  files: `owner text PRIMARY KEY, media_type text NOT NULL, name text, bytes bytea NOT NULL,
    updated_at timestamptz NOT NULL`,
  safe_marks: `emergency_id text NOT NULL REFERENCES emergencies ON DELETE CASCADE,
    transmitter_id text NOT NULL, user_name text NOT NULL, at timestamptz NOT NULL,
    PRIMARY KEY (emergency_id, transmitter_id)`,
  // The answer to a repeated request to raise an alarm.
  alarm_requests: `user_id text NOT NULL, key text NOT NULL, emergency_id text NOT NULL REFERENCES emergencies ON DELETE CASCADE,
    joined boolean NOT NULL, at timestamptz NOT NULL, PRIMARY KEY (user_id, key)`,
  // Without a reference to the transmitter: the roll of an emergency keeps everybody.
  roll_calls: `emergency_id text NOT NULL REFERENCES emergencies ON DELETE CASCADE, transmitter_id text NOT NULL,
    name text NOT NULL, kind text NOT NULL, company text, department text, place text, last_seen_at timestamptz,
    status text NOT NULL, marked_by text, safe_at timestamptz,
    PRIMARY KEY (emergency_id, transmitter_id)`,
  alerts: `id text PRIMARY KEY, kind text NOT NULL, transmitter_id text REFERENCES transmitters ON DELETE CASCADE,
    receiver_id text REFERENCES receivers ON DELETE CASCADE, zone_id text REFERENCES zones ON DELETE CASCADE,
    since timestamptz NOT NULL, acknowledged_by text, acknowledged_at timestamptz`,
  phone_enrollments: `token text PRIMARY KEY, personnel_id text, transmitter_id text, email text,
    expires_at timestamptz NOT NULL, completed_at timestamptz, platform text, device_name text, irk text`
}

/** All carriers of transmitters with their home floor and current position. */
const CARRIERS = `SELECT t.id AS transmitter_id, t.entity_type, t.entity_id, t.name AS badge,
    coalesce(e.name, a.name, nullif(concat_ws(' ', t.first_name, t.last_name), '')) AS name, t.company,
    t.is_active IS NOT FALSE AND e.is_active IS NOT FALSE AS is_active, coalesce(e.floor_id, a.floor_id) AS home_floor_id,
    coalesce(e.is_first_aider, false) AS is_first_aider, d.name AS department, d.color, f.building_id, p.floor_id, p.zone_id,
    z.name AS zone_name, z.is_muster_point, p.x, p.y, p.accuracy, p.at
  FROM transmitters t
  LEFT JOIN personnel e ON t.entity_type = 'employee' AND e.id = t.entity_id
  LEFT JOIN assets a ON t.entity_type = 'asset' AND a.id = t.entity_id
  LEFT JOIN departments d ON d.id = coalesce(e.department_id, a.department_id, t.department_id)
  LEFT JOIN positions p ON p.transmitter_id = t.id
  LEFT JOIN floors f ON f.id = p.floor_id LEFT JOIN zones z ON z.id = p.zone_id
  WHERE t.entity_type IS NOT NULL`

const INDEXES = [
  'UNIQUE INDEX IF NOT EXISTS users_email ON users (lower(email))',
  'INDEX IF NOT EXISTS audit_log_at ON audit_log (at)'
]

/** The script that creates the tables and views that do not exist yet. */
export const tablesSql = (): string => {
  const ofResources = Object.fromEntries(resources.map((resource) => [resource.table, columnsSql(resource)]))
  const tables = Object.entries({ roles: ROLES, ...ofResources, ...OTHER_TABLES })
  const views = Object.entries({
    carriers: CARRIERS,
    ...Object.fromEntries(resources.map((resource) => [resource.from, shownSql(resource)]))
  })
  return [
    ...tables.map(([table, columns]) => `CREATE TABLE IF NOT EXISTS ${table} (${columns})`),
    ...INDEXES.map((index) => `CREATE ${index}`),
    // Views hold no data, so they are recreated to match the program.
    ...views.flatMap(([view, query]) => [`DROP VIEW IF EXISTS ${view} CASCADE`, `CREATE VIEW ${view} AS ${query}`])
  ].join(';\n')
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
