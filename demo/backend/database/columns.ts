import type { TSchema } from '@sinclair/typebox'

/** What a column holds. */
export type Kind = 'text' | 'id' | 'integer' | 'number' | 'flag' | 'json' | 'time'

/** A column that names a row of another table. */
export interface Reference {
  readonly references: string
  /** What becomes of a row when the one that it names is deleted. */
  readonly orElse: 'CASCADE' | 'SET NULL'
}

/** Fields by the names that the API gives them. */
export type Columns = Readonly<Record<string, Kind | Reference>>

const SQL_TYPES: Readonly<Record<Kind, string>> = {
  text: 'text',
  id: 'text',
  integer: 'integer',
  number: 'double precision',
  flag: 'boolean',
  json: 'jsonb',
  time: 'timestamptz'
}

const KINDS: Readonly<Record<string, Kind>> = { string: 'text', integer: 'integer', number: 'number', boolean: 'flag' }

/** A column for every field that a shared schema names. What may be text or a number, and is no id, is kept as it came. */
export const columnsOf = (schema: TSchema): Columns =>
  Object.fromEntries(
    Object.entries((schema.properties ?? {}) as Record<string, TSchema>).map(([field, property]) => {
      const [type = '', another] = typesOf(property)
      if (another !== undefined) return [field, field.endsWith('Id') ? 'id' : 'json']
      return [field, KINDS[type] ?? 'json']
    })
  )

const typesOf = (schema: TSchema): string[] =>
  Array.isArray(schema.anyOf) ? schema.anyOf.flatMap(typesOf) : schema.type === 'null' ? [] : [String(schema.type)]

export const kindOf = (column: Kind | Reference): Kind => (typeof column === 'string' ? column : 'id')

/** `floorId` is `floor_id` in SQL. Only ever called with names out of our own tables. */
export const sqlName = (field: string): string => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

export const sqlType = (column: Kind | Reference): string => SQL_TYPES[kindOf(column)]

export const columnSql = (field: string, column: Kind | Reference): string => {
  const reference = typeof column === 'string' ? '' : ` REFERENCES ${column.references} ON DELETE ${column.orElse}`
  return `${sqlName(field)} ${sqlType(column)}${reference}`
}
