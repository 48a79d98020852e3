import type { TSchema } from '@sinclair/typebox'

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
