import { putRow } from './records.js'
import type { Fields, World } from './world.js'

/** What stands in the table `settings` under this name; the fallback where nothing does. */
export const readSetting = async <T extends Fields>(
  { database }: Pick<World, 'database'>,
  name: string,
  fallback: T
): Promise<T> => {
  const [row] = await database.rows<{ value: T }>('SELECT value FROM settings WHERE name = $1', [name])
  return row?.value ?? fallback
}

export const writeSetting = (world: World, name: string, value: Fields): Promise<void> =>
  putRow(world, 'settings', { name, value: JSON.stringify(value), updatedAt: world.now() }, 'name')

/** Adds to what is kept, or to the fallback, in one statement: of changes that come together, none is lost. */
export const changeSetting = async ({ database, now }: World, name: string, fallback: Fields, changes: Fields) => {
  const [kept] = await database.rows<{ value: Fields }>(
    `INSERT INTO settings (name, value, updated_at) VALUES ($1, $2::jsonb || $3::jsonb, $4)
     ON CONFLICT (name) DO UPDATE SET value = settings.value || $3::jsonb, updated_at = $4 RETURNING value`,
    [name, JSON.stringify(fallback), JSON.stringify(changes), now()]
  )
  return kept?.value
}
