import { notFound } from './errors.js'
import { type Resource, sqlName, transmitters } from './resources.js'
import type { Fields, Values, World } from './world.js'

// Reads and writes the rows of all resources. SQL names come from the resource definition; values are always parameters.

/** The existing rows among these ids, in the same order. */
export const getRecords = async ({ database }: World, { from }: Resource, ids: readonly string[]) => {
  const sql = `SELECT * FROM ${from} WHERE id = ANY($1::text[]) ORDER BY array_position($1::text[], id)`
  return (await database.rows(sql, [ids])).map(flattened)
}

/** Throws `NOT_FOUND` if there is no such row. */
export const getRecord = async (world: World, resource: Resource, id: string): Promise<Fields> => {
  const [row] = await getRecords(world, resource, [id])
  if (row === undefined) throw notFound(resource.noun)
  return row
}

/** Inserts rows with their ids in one statement. Fields without a column are stored in `extra`. */
export const insertRecords = async ({ database, now }: World, resource: Resource, rows: readonly Fields[]) => {
  const fields = ['id', ...Object.keys(resource.columns), 'extra']
  await database.rows(
    `INSERT INTO ${resource.table} (${fields.map(sqlName).join(', ')}, created_at, updated_at)
     SELECT ${fields.map((field) => `"${field}"`).join(', ')}, $2, $2
     FROM jsonb_to_recordset($1::jsonb) AS sent(${recordOf(resource, fields)})`,
    [JSON.stringify(rows.map((row) => ({ ...row, extra: extraOf(resource, row) }))), now()]
  )
}

/** Returns the new id. */
export const createRecord = async (world: World, resource: Resource, body: Fields): Promise<string> => {
  const id = world.newId()
  await insertRecords(world, resource, [{ ...body, id }])
  return id
}

/** Changes the given fields in all of these rows. Returns the ids of existing rows. */
export const changeRecords = async (world: World, resource: Resource, ids: readonly string[], body: Fields) => {
  const { table, columns } = resource
  const fields = Object.keys(body).filter((field) => Object.hasOwn(columns, field))
  const changed = await world.database.rows<{ id: string }>(
    `UPDATE ${table} SET ${fields.map((field) => `${sqlName(field)} = sent."${field}", `).join('')}
       extra = ${table}.extra || sent.extra, updated_at = $3, version = ${table}.version + 1
     FROM jsonb_to_record($2::jsonb) AS sent(${recordOf(resource, [...fields, 'extra'])})
     WHERE ${table}.id = ANY($1::text[]) RETURNING ${table}.id`,
    [ids, JSON.stringify({ ...body, extra: extraOf(resource, body) }), world.now()]
  )
  return changed.map(({ id }) => id)
}

/** Throws `NOT_FOUND` if there is no such row. */
export const updateRecord = async (world: World, resource: Resource, id: string, body: Fields): Promise<Fields> => {
  const [changed] = await changeRecords(world, resource, [id], body)
  if (changed === undefined) throw notFound(resource.noun)
  return getRecord(world, resource, id)
}

/** Deletes rows and their files, and unassigns their transmitters. Returns the ids of deleted rows. */
export const removeRecords = async (world: World, resource: Resource, ids: readonly string[]): Promise<string[]> => {
  const sql = `DELETE FROM ${resource.table} WHERE id = ANY($1::text[]) RETURNING id`
  const gone = await world.database.rows<{ id: string }>(sql, [ids])
  await world.database.rows(`DELETE FROM files WHERE owner NOT IN
    (SELECT 'floors/' || id FROM floors UNION ALL SELECT 'personnel/' || id FROM personnel)`)
  await freeTransmitters(world, resource, ids)
  return gone.map(({ id }) => id)
}

/** The fields of a transmitter that nobody carries. */
export const FREE = {
  ...{ entity_type: null, entityId: null, status: 'available', assignedAt: null, expiresAt: null },
  ...{ firstName: null, lastName: null, company: null }
}

/** Unassigns the transmitters of these carriers. */
export const freeTransmitters = async (world: World, { entityTypes }: Resource, entityIds: readonly string[]) => {
  const sql = 'SELECT id FROM transmitters WHERE entity_type = ANY($1::text[]) AND entity_id = ANY($2::text[])'
  const carried = await world.database.rows<{ id: string }>(sql, [entityTypes, entityIds])
  const ids = carried.map(({ id }) => id)
  if (ids.length > 0) await changeRecords(world, transmitters, ids, FREE)
}

/** Inserts a row into a table that is not a resource. With a key, it replaces the row with the same key. */
export const putRow = async (
  { database }: Pick<World, 'database'>,
  table: string,
  row: Values,
  key?: string
): Promise<void> => {
  const names = Object.keys(row).map(sqlName)
  const instead = names.map((name) => `${name} = excluded.${name}`).join(', ')
  await database.rows(
    `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map((_, index) => `$${index + 1}`).join(', ')})
     ${key === undefined ? '' : `ON CONFLICT (${key}) DO UPDATE SET ${instead}`}`,
    Object.values(row)
  )
}

/** The SQL column list of a JSON body, with the field names of the API. */
const recordOf = ({ columns }: Resource, fields: readonly string[]): string => {
  const types: Readonly<Record<string, string>> = { id: 'text', extra: 'jsonb', ...columns }
  return fields.map((field) => `"${field}" ${types[field]}`).join(', ')
}

const extraOf = ({ fields }: Resource, body: Fields): Fields =>
  Object.fromEntries(Object.entries(body).filter(([field]) => !fields.includes(field)))

/** Merges the fields in `extra` into the row. */
export const flattened = ({ extra, ...row }: Fields): Fields => ({ ...(extra as Fields | undefined), ...row })
