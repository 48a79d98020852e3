import { type Resource, resources } from '../resources.js'
import { columnSql, sqlName, sqlType } from './columns.js'
import type { Database, Statements } from './database.js'

// Tables that are no resources: what they hold is read and written by the one route that it belongs to.
const OTHER_TABLES: readonly string[] = [
  `CREATE TABLE IF NOT EXISTS credentials (
    user_id text PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    password_hash text NOT NULL,
    failures integer NOT NULL DEFAULT 0,
    locked_until timestamptz,
    generation integer NOT NULL DEFAULT 0)`,
  `CREATE TABLE IF NOT EXISTS audit_log (
    id text PRIMARY KEY, at timestamptz NOT NULL, action text NOT NULL, result text NOT NULL, user_id text, user_email text,
    ip text, method text, path text, details jsonb)`,
  'CREATE INDEX IF NOT EXISTS audit_log_at ON audit_log (at)',
  `CREATE TABLE IF NOT EXISTS positions (
    transmitter_id text PRIMARY KEY REFERENCES transmitters ON DELETE CASCADE,
    floor_id text, zone_id text, x double precision, y double precision, accuracy double precision, at timestamptz NOT NULL)`,
  `CREATE TABLE IF NOT EXISTS position_history (
    transmitter_id text NOT NULL REFERENCES transmitters ON DELETE CASCADE,
    floor_id text, zone_id text, x double precision, y double precision, at timestamptz NOT NULL)`,
  'CREATE INDEX IF NOT EXISTS position_history_of ON position_history (transmitter_id, at)',
  `CREATE TABLE IF NOT EXISTS battery_readings (
    device_id text NOT NULL REFERENCES transmitters ON DELETE CASCADE, level double precision, at timestamptz NOT NULL)`,
  'CREATE INDEX IF NOT EXISTS battery_readings_of ON battery_readings (device_id, at)',
  `CREATE TABLE IF NOT EXISTS emergency_events (
    id text PRIMARY KEY, emergency_id text REFERENCES emergencies ON DELETE CASCADE, kind text NOT NULL, message text,
    user_email text, at timestamptz NOT NULL)`,
  'CREATE TABLE IF NOT EXISTS settings (name text PRIMARY KEY, value jsonb NOT NULL, updated_at timestamptz NOT NULL)',
  `CREATE TABLE IF NOT EXISTS files (
    owner text PRIMARY KEY, media_type text NOT NULL, name text, bytes bytea NOT NULL, updated_at timestamptz NOT NULL)`,
  `CREATE TABLE IF NOT EXISTS discovered_receivers (
    mac_address text PRIMARY KEY, model text, rssi integer, building_id text, first_heard_at timestamptz NOT NULL)`,
  `CREATE TABLE IF NOT EXISTS phone_enrollments (
    token text PRIMARY KEY, personnel_id text, transmitter_id text, email text, expires_at timestamptz NOT NULL,
    completed_at timestamptz, platform text, device_name text, irk text)`,
  `CREATE TABLE IF NOT EXISTS page_errors (
    id text PRIMARY KEY, at timestamptz NOT NULL, user_id text, message text NOT NULL, report jsonb NOT NULL)`
]

const ROLES =
  'CREATE TABLE IF NOT EXISTS roles (id text PRIMARY KEY, name text, description text, permissions jsonb NOT NULL)'

const UNIQUE_EMAIL = 'CREATE UNIQUE INDEX IF NOT EXISTS users_email ON users (lower(email))'

export const createTables = async (database: Database): Promise<void> => {
  for (const sql of [ROLES, ...resources.map(tableSql), UNIQUE_EMAIL, ...OTHER_TABLES]) await database.rows(sql)
}

/** `extra` keeps the fields of open bodies that have no column. */
const tableSql = ({ table, columns }: Resource): string => {
  const own = Object.entries(columns).map(([field, column]) => columnSql(field, column))
  const common = [
    "extra jsonb NOT NULL DEFAULT '{}'",
    'created_at timestamptz NOT NULL',
    'updated_at timestamptz NOT NULL'
  ]
  return `CREATE TABLE IF NOT EXISTS ${table} (${['id text PRIMARY KEY', ...own, ...common].join(', ')})`
}

/** Many rows in one statement. Fields that a row does not have become null. */
export const insertMany = async (
  statements: Statements,
  { table, columns }: Resource,
  rows: readonly (Readonly<Record<string, unknown>> & { readonly id: string })[],
  now: Date
): Promise<void> => {
  const fields = Object.entries(columns)
  const names = ['id', ...fields.map(([field]) => sqlName(field))]
  // The record's fields keep the names of the API, so that the rows need not be written anew.
  const record = ['id text', ...fields.map(([field, column]) => `"${field}" ${sqlType(column)}`)]
  const values = ['id', ...fields.map(([field]) => `"${field}"`)]
  await statements.rows(
    `INSERT INTO ${table} (${names.join(', ')}, created_at, updated_at)
     SELECT ${values.join(', ')}, $2, $2 FROM jsonb_to_recordset($1::jsonb) AS r(${record.join(', ')})`,
    [JSON.stringify(rows), now]
  )
}
