import type { EmergencyType } from '../../emergency-types.js'
import { flattened } from '../records.js'
import type { Fields, World } from '../world.js'

/** The most dangerous type first. */
const BY_DANGER: readonly EmergencyType[] = ['intruder', 'fire', 'chemical', 'medical', 'other']

const ACTIVE = `SELECT * FROM emergencies_shown WHERE status = 'active'
  ORDER BY is_drill IS TRUE, array_position($1::text[], type), created_at DESC, id`

/**
 * Waits for other transactions that raise, change or end emergencies, so that each of them decides about the current state: one
 * alarm and one drill that start at the same time must not both be active.
 */
export const lockEmergencies = async ({ database }: Pick<World, 'database'>): Promise<void> => {
  await database.rows('LOCK TABLE emergencies IN SHARE ROW EXCLUSIVE MODE')
}

/** The active emergencies and drills in the order of danger: real ones first, then by type, then the newest. */
export const activeEmergencies = async ({ database }: Pick<World, 'database'>): Promise<Fields[]> =>
  (await database.rows(ACTIVE, [BY_DANGER])).map(flattened)

/** An active alarm or drill of the same type and building; null if there is none. */
export const identicalTo = async (world: Pick<World, 'database'>, { type, buildingId, isDrill }: Fields) => {
  const same = (one: Fields): boolean =>
    one.type === type &&
    String(one.buildingId ?? '') === String(buildingId ?? '') &&
    (one.isDrill === true) === (isDrill === true)
  return (await activeEmergencies(world)).find(same) ?? null
}
