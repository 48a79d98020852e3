import { readSetting } from '../settings.js'
import type { World } from '../world.js'

/** The records that rows of a file can refer to. */
export interface Site {
  /** Names by id. */
  readonly names: Readonly<Record<'departments' | 'personnel', ReadonlyMap<string, string>>>
  /** Ids by name in lower case, and those of people also by e-mail address. */
  readonly departments: ReadonlyMap<string, string>
  readonly people: ReadonlyMap<string, readonly string[]>
  readonly ids: Readonly<Record<'buildings' | 'floors' | 'departments', ReadonlySet<string>>>
  /** The carrier of each transmitter as `type/id`; null if it is available. */
  readonly carriers: ReadonlyMap<string, string | null>
  readonly timeZone: string
}

interface Entry {
  readonly id: string
  readonly name: string | null
  readonly email?: string | null
}

export const readSite = async (world: World): Promise<Site> => {
  const read = (sql: string): Promise<Entry[]> => world.database.rows<Entry>(sql)
  const departments = await read('SELECT id, name FROM departments')
  const people = await read('SELECT id, name, email FROM personnel ORDER BY id')
  const transmitters = await world.database.rows<{ id: string; carrier: string | null }>(
    "SELECT id, entity_type || '/' || coalesce(entity_id, '') AS carrier FROM transmitters"
  )
  const byText = new Map<string, string[]>()
  for (const { id, name, email } of people)
    for (const text of new Set([name, email]))
      if (text) byText.set(text.toLowerCase(), [...(byText.get(text.toLowerCase()) ?? []), id])
  const namesOf = (entries: readonly Entry[]) => new Map(entries.map(({ id, name }) => [id, name ?? id]))
  const idsOf = (entries: readonly Entry[]) => new Set(entries.map(({ id }) => id))
  const { timezone } = await readSetting(world, 'general')
  return {
    names: { departments: namesOf(departments), personnel: namesOf(people) },
    departments: new Map(departments.map(({ id, name }) => [(name ?? '').toLowerCase(), id])),
    people: byText,
    ids: {
      buildings: idsOf(await read('SELECT id, name FROM buildings')),
      floors: idsOf(await read('SELECT id, name FROM floors')),
      departments: idsOf(departments)
    },
    carriers: new Map(transmitters.map(({ id, carrier }) => [id, carrier])),
    timeZone: typeof timezone === 'string' ? timezone : 'UTC'
  }
}
