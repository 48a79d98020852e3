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

/** Answers with what is kept. */
export const writeSetting = async <T extends Fields>(world: World, name: string, value: T): Promise<T> => {
  await putRow(world, 'settings', { name, value: JSON.stringify(value), updatedAt: world.now() }, 'name')
  return value
}
