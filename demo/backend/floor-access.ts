import type { Caller } from './auth/permissions.js'
import { HttpError } from './errors.js'
import type { Fields, World } from './world.js'

/** The roles that may watch a floor, from its `metadata.roles`; null for every role. */
const rolesOf = ({ metadata }: Fields): readonly unknown[] | null => {
  const { roles = null } = (metadata ?? {}) as { readonly roles?: unknown }
  return Array.isArray(roles) ? roles : null
}

const isAllowed = (floor: Fields, caller: Caller): boolean =>
  caller.permissions.includes('positions.read') && (rolesOf(floor)?.includes(caller.role) ?? true)

/** Throws if the caller may not see where people are on this floor. */
export const checkFloorAccess = (floor: Fields, caller: Caller): void => {
  if (!isAllowed(floor, caller)) throw new HttpError(403, 'FORBIDDEN', 'Your account may not watch this floor.')
}

/** False also for a floor that does not exist. */
export const mayWatchFloor = async ({ database }: Pick<World, 'database'>, caller: Caller, floorId: string) => {
  const [floor] = await database.rows('SELECT metadata FROM floors WHERE id = $1', [floorId])
  return floor !== undefined && isAllowed(floor, caller)
}
