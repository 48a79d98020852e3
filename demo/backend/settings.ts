import { oneRow, type Statements } from './database/database.js'
import type { Fields } from './records.js'

/** What stands in the table `settings` under this name; the fallback where nothing does. */
export const readSetting = async <T extends Fields>(statements: Statements, name: string, fallback: T): Promise<T> => {
  const row = await oneRow<{ value: T }>(statements, 'SELECT value FROM settings WHERE name = $1', [name])
  return row?.value ?? fallback
}

export const writeSetting = async (statements: Statements, name: string, value: Fields, now: Date): Promise<void> => {
  await statements.rows(
    `INSERT INTO settings (name, value, updated_at) VALUES ($1, $2, $3)
     ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at`,
    [name, JSON.stringify(value), now]
  )
}
