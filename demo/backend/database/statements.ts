import type { Fields, Statements, Value } from '../world.js'

interface Connection {
  query(sql: string, values: Value[]): Promise<{ readonly rows: unknown[] }>
}

/** What SQL calls `floor_id` is `floorId` everywhere else; names are changed here, on the way out. */
export const statementsOn = (connection: Connection): Statements => ({
  rows: async <T>(sql: string, values: readonly Value[] = []) => {
    const { rows } = await connection.query(sql, [...values])
    const names = Object.keys(rows[0] ?? {}).map((name) => [name, fieldName(name)] as const)
    return (rows as Fields[]).map((row) => Object.fromEntries(names.map(([name, field]) => [field, row[name]]))) as T[]
  }
})

/** The one field that has an underscore in the API too. */
const fieldName = (name: string): string =>
  name === 'entity_type' ? name : name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
