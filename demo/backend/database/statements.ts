import type { Statements, Value } from '../world.js'

interface Connection {
  query(sql: string, values: Value[]): Promise<{ readonly rows: unknown[] }>
}

export const statementsOn = (connection: Connection): Statements => ({
  rows: async <T>(sql: string, values: readonly Value[] = []) => (await connection.query(sql, [...values])).rows as T[]
})
