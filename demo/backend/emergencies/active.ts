import { flattened } from '../records.js'
import type { Fields, World } from '../world.js'

const ACTIVE = `SELECT * FROM emergencies_shown WHERE status = 'active' ORDER BY is_drill IS TRUE, created_at DESC, id`

/**
 * Waits for other transactions that raise, change or end emergencies, so that each of them decides about the current state: one
 * alarm and one drill that start at the same time must not both be active.
 */
export const lockEmergencies = async ({ database }: Pick<World, 'database'>): Promise<void> => {
  await database.rows('LOCK TABLE emergencies IN SHARE ROW EXCLUSIVE MODE')
}

/** The active emergencies and drills: real ones first, then the newest. */
export const activeEmergencies = async ({ database }: Pick<World, 'database'>): Promise<Fields[]> =>
  (await database.rows(ACTIVE)).map(flattened)

/** The most important active emergency, or null. */
export const activeEmergency = async (world: Pick<World, 'database'>): Promise<Fields | null> =>
  (await activeEmergencies(world))[0] ?? null
