import { flattened } from '../records.js'
import type { Fields, World } from '../world.js'

const ACTIVE = `SELECT * FROM emergencies_shown WHERE status = 'active' ORDER BY is_drill IS TRUE, created_at DESC, id`

/** The active emergencies and drills: real ones first, then the newest. */
export const activeEmergencies = async ({ database }: Pick<World, 'database'>): Promise<Fields[]> =>
  (await database.rows(ACTIVE)).map(flattened)

/** The most important active emergency, or null. */
export const activeEmergency = async (world: Pick<World, 'database'>): Promise<Fields | null> =>
  (await activeEmergencies(world))[0] ?? null
