import { type Kind, kindOf, sqlName } from './database/columns.js'
import { oneRow, type Row, type Statements, type Value } from './database/database.js'
import { invalid, notFound } from './errors.js'
import type { Page } from './paging.js'
import type { Resource } from './resources.js'

/** What the backend takes from the world, so that a test can hand in its own. */
export interface World {
  readonly now: () => Date
  readonly newId: () => string
}

export type Fields = Readonly<Record<string, unknown>>

export interface Listed {
  readonly rows: Row[]
  readonly total: number
}

/** Reading and writing the rows of one resource. Names in SQL come from its description, values are always parameters. */
export class Records {
  readonly #resource: Resource
  readonly #world: World
  readonly #select: string

  constructor(resource: Resource, world: World) {
    this.#resource = resource
    this.#world = world
    this.#select = [...Object.entries(this.#readable())].map(([field, sql]) => `${sql} AS "${field}"`).join(', ')
  }

  async list(statements: Statements, page: Page, filters: Fields): Promise<Listed> {
    const readable = this.#readable()
    const values: Value[] = []
    const conditions: string[] = []
    for (const [field, text] of Object.entries(filters)) {
      // A query may hold parameters that are somebody else's.
      if (!Object.hasOwn(this.#resource.columns, field) || typeof text !== 'string') continue
      values.push(text)
      conditions.push(`${this.#resource.table}.${sqlName(field)}::text = $${values.length}`)
    }
    if (page.search !== null) {
      values.push(`%${page.search.replace(/[\\%_]/g, '\\$&')}%`)
      const place = `$${values.length}`
      conditions.push(`(${this.#resource.search.map((field) => `${readable[field]} ILIKE ${place}`).join(' OR ')})`)
    }
    const where = conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : ''
    const order = page.sort ?? this.#resource.order
    if (!Object.hasOwn(readable, order)) throw invalid('/sort', 'is not a field to sort by')
    const from = `FROM ${this.#resource.table} ${where}`
    const counted = await oneRow<{ total: number }>(statements, `SELECT count(*)::int AS total ${from}`, values)
    const rows = await statements.rows(
      `SELECT ${this.#select}, ${this.#resource.table}.extra AS extra ${from}
       ORDER BY ${readable[order]} ${page.descending ? 'DESC' : 'ASC'}, ${this.#resource.table}.id
       LIMIT $${values.length + 1} OFFSET $${values.length + 2}`,
      [...values, page.limit, page.offset]
    )
    return { rows: rows.map(flattened), total: counted?.total ?? 0 }
  }

  /** Throws `NOT_FOUND`. */
  async get(statements: Statements, id: string): Promise<Row> {
    const { table, noun } = this.#resource
    const row = await oneRow(
      statements,
      `SELECT ${this.#select}, ${table}.extra AS extra FROM ${table} WHERE ${table}.id = $1`,
      [id]
    )
    if (row === null) throw notFound(noun)
    return flattened(row)
  }

  async create(statements: Statements, body: Fields, id = this.#world.newId()): Promise<Row> {
    const { columns, extra } = this.#split(body)
    const now = this.#world.now()
    const names = ['id', ...columns.map(([name]) => name), 'extra', 'created_at', 'updated_at']
    const values = [id, ...columns.map(([, value]) => value), JSON.stringify(extra), now, now]
    await statements.rows(
      `INSERT INTO ${this.#resource.table} (${names.join(', ')}) VALUES (${values.map((_, at) => `$${at + 1}`).join(', ')})`,
      values
    )
    return this.get(statements, id)
  }

  /** Changes the fields that are given, in all of these rows; tells which rows there are. */
  async change(statements: Statements, ids: readonly string[], body: Fields): Promise<string[]> {
    const { columns, extra } = this.#split(body)
    const sets = columns.map(([name], at) => `${name} = $${at + 4}`)
    const changed = await statements.rows<{ id: string }>(
      `UPDATE ${this.#resource.table}
       SET ${[...sets, 'extra = extra || $2::jsonb', 'updated_at = $3'].join(', ')}
       WHERE id IN (SELECT jsonb_array_elements_text($1::jsonb)) RETURNING id`,
      [JSON.stringify(ids), JSON.stringify(extra), this.#world.now(), ...columns.map(([, value]) => value)]
    )
    return changed.map(({ id }) => id)
  }

  /** Throws `NOT_FOUND`. `replace` empties the fields that are not given. */
  async update(statements: Statements, id: string, body: Fields, replace = false): Promise<Row> {
    const empty = replace ? Object.fromEntries(Object.keys(this.#resource.columns).map((field) => [field, null])) : {}
    const changed = await this.change(statements, [id], { ...empty, ...body })
    if (changed.length === 0) throw notFound(this.#resource.noun)
    return this.get(statements, id)
  }

  async remove(statements: Statements, ids: readonly string[]): Promise<string[]> {
    const removed = await statements.rows<{ id: string }>(
      `DELETE FROM ${this.#resource.table} WHERE id IN (SELECT jsonb_array_elements_text($1::jsonb)) RETURNING id`,
      [JSON.stringify(ids)]
    )
    return removed.map(({ id }) => id)
  }

  /** Every field that can be read, and its SQL. */
  #readable(): Readonly<Record<string, string>> {
    const { table, columns, computed } = this.#resource
    const stored = ['id', ...Object.keys(columns), 'createdAt', 'updatedAt']
    return { ...Object.fromEntries(stored.map((field) => [field, `${table}.${sqlName(field)}`])), ...computed }
  }

  #split(body: Fields): { readonly columns: readonly (readonly [string, Value])[]; readonly extra: Fields } {
    const readable = this.#readable()
    const columns: (readonly [string, Value])[] = []
    const extra: Record<string, unknown> = {}
    for (const [field, value] of Object.entries(body)) {
      const column = Object.hasOwn(this.#resource.columns, field) ? this.#resource.columns[field] : undefined
      if (column !== undefined) columns.push([sqlName(field), toValue(kindOf(column), value)])
      else if (!Object.hasOwn(readable, field)) extra[field] = value
    }
    return { columns, extra }
  }
}

/** The shared schemas have checked what it is. */
const toValue = (kind: Kind, value: unknown): Value => {
  if (value === null || value === undefined) return null
  if (kind === 'json') return JSON.stringify(value)
  return kind === 'id' || kind === 'text' ? String(value) : (value as Value)
}

/** Fields without a column stand beside the others, as they came. */
const flattened = ({ extra, ...row }: Row): Row => ({ ...(extra as Fields), ...row })
