import { sqlName } from './database/columns.js'
import { invalid, notFound } from './errors.js'
import { pageOf } from './paging.js'
import type { Resource } from './resources.js'
import type { Fields, Value, Values, World } from './world.js'

// Reading and writing the rows of every resource. Names in SQL come from its description, values are always parameters.

/** Those that the query asks for: by the values of fields, by a search, a page of them, in an order. */
export const listRecords = async (
  { database }: World,
  { table, columns, readable, search, order }: Resource,
  query: Fields,
  { limit, offset }: Pick<ReturnType<typeof pageOf>, 'limit' | 'offset'>
) => {
  const page = pageOf(query)
  const values: Value[] = []
  const place = (value: Value): string => `$${values.push(value)}`
  // A query may hold parameters that are somebody else's.
  const conditions = Object.entries(query).flatMap(([field, text]) =>
    Object.hasOwn(columns, field) && typeof text === 'string' ? [`${readable[field]}::text = ${place(text)}`] : []
  )
  if (page.search !== null) {
    const pattern = place(`%${page.search.replace(/[\\%_]/g, '\\$&')}%`)
    conditions.push(`(${search.map((field) => `${readable[field]} ILIKE ${pattern}`).join(' OR ')})`)
  }
  const by = page.sort ?? order
  if (!Object.hasOwn(readable, by)) throw invalid([{ path: '/sort', message: 'is not a field to sort by' }])
  const from = `FROM ${table} WHERE ${['true', ...conditions].join(' AND ')}`
  const [counted] = await database.rows<{ total: number }>(`SELECT count(*)::int AS total ${from}`, values)
  const rows = await database.rows(
    `SELECT ${selected(readable)} ${from} ORDER BY ${readable[by]} ${page.descending ? 'DESC' : 'ASC'}, ${table}.id
     LIMIT ${place(limit)} OFFSET ${place(offset)}`,
    values
  )
  return { rows: rows.map(flattened), total: counted?.total ?? 0 }
}

/** Throws `NOT_FOUND`. */
export const getRecord = async ({ database }: World, { table, noun, readable }: Resource, id: string) => {
  const [row] = await database.rows(`SELECT ${selected(readable)} FROM ${table} WHERE id = $1`, [id])
  if (row === undefined) throw notFound(noun)
  return flattened(row)
}

/** Many in one statement, each with its id. What they say beside their columns is kept too. */
export const insertRecords = async ({ database, now }: World, resource: Resource, rows: readonly Fields[]) => {
  const fields = ['id', ...Object.keys(resource.columns), 'extra']
  await database.rows(
    `INSERT INTO ${resource.table} (${fields.map(sqlName).join(', ')}, created_at, updated_at)
     SELECT ${fields.map((field) => `"${field}"`).join(', ')}, $2, $2
     FROM jsonb_to_recordset($1::jsonb) AS sent(${recordOf(resource, fields)})`,
    [JSON.stringify(rows.map((row) => ({ ...row, extra: extraOf(resource, row) }))), now()]
  )
}

/** Tells its id. */
export const createRecord = async (world: World, resource: Resource, body: Fields): Promise<string> => {
  const id = world.newId()
  await insertRecords(world, resource, [{ ...body, id }])
  return id
}

/** Changes the fields that are given, in all of these rows; tells which rows there are. */
export const changeRecords = async (world: World, resource: Resource, ids: readonly string[], body: Fields) => {
  const { table, columns } = resource
  const fields = Object.keys(body).filter((field) => Object.hasOwn(columns, field))
  const changed = await world.database.rows<{ id: string }>(
    `UPDATE ${table} SET ${fields.map((field) => `${sqlName(field)} = sent."${field}", `).join('')}
       extra = ${table}.extra || sent.extra, updated_at = $3
     FROM jsonb_to_record($2::jsonb) AS sent(${recordOf(resource, [...fields, 'extra'])})
     WHERE ${table}.id = ANY($1::text[]) RETURNING ${table}.id`,
    [ids, JSON.stringify({ ...body, extra: extraOf(resource, body) }), world.now()]
  )
  return changed.map(({ id }) => id)
}

/** Throws `NOT_FOUND`. */
export const updateRecord = async (world: World, resource: Resource, id: string, body: Fields): Promise<Fields> => {
  const [changed] = await changeRecords(world, resource, [id], body)
  if (changed === undefined) throw notFound(resource.noun)
  return getRecord(world, resource, id)
}

/** Tells which there were. */
export const removeRecords = async ({ database }: World, { table }: Resource, ids: readonly string[]) => {
  const sql = `DELETE FROM ${table} WHERE id = ANY($1::text[]) RETURNING id`
  return (await database.rows<{ id: string }>(sql, [ids])).map(({ id }) => id)
}

/** One row of a table that is no resource. With a key, it takes the place of the one that has it. */
export const putRow = async ({ database }: World, table: string, row: Values, key?: string): Promise<void> => {
  const names = Object.keys(row).map(sqlName)
  const instead = names.map((name) => `${name} = excluded.${name}`).join(', ')
  await database.rows(
    `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map((_, index) => `$${index + 1}`).join(', ')})
     ${key === undefined ? '' : `ON CONFLICT (${key}) DO UPDATE SET ${instead}`}`,
    Object.values(row)
  )
}

const selected = (readable: Resource['readable']): string =>
  [...Object.entries(readable).map(([field, sql]) => `${sql} AS "${field}"`), 'extra'].join(', ')

/** What a body looks like to SQL. The fields keep the names of the API, so that it need not be written anew. */
const recordOf = ({ columns }: Resource, fields: readonly string[]): string => {
  const types: Readonly<Record<string, string>> = { id: 'text', extra: 'jsonb', ...columns }
  return fields.map((field) => `"${field}" ${types[field]}`).join(', ')
}

const extraOf = ({ readable }: Resource, body: Fields): Fields =>
  Object.fromEntries(Object.entries(body).filter(([field]) => !Object.hasOwn(readable, field)))

/** Fields without a column stand beside the others, as they came. */
const flattened = ({ extra, ...row }: Fields): Fields => ({ ...(extra as Fields), ...row })
