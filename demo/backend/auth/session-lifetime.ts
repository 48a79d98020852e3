import { Check } from '@sinclair/typebox/value'
import { GeneralSettingsSchema } from '../../../schemas/management.js'
import type { Fields } from '../database/database.js'
import { readSetting } from '../settings.js'
import type { World } from '../world.js'

const USUAL_SECONDS = 8 * 60 * 60
const REMEMBERED_SECONDS = 7 * 24 * 60 * 60

/** How long a session lasts that begins now: as the settings say, for everybody alike, or as usual where they do not. */
export const sessionLifetimeSeconds = async (world: Pick<World, 'database'>, remembered: boolean): Promise<number> => {
  const { sessionTimeoutMinutes: minutes } = await readSetting(world, 'settings/general', {} as Fields)
  // A database that was kept may hold what is no longer allowed, and nobody is to be locked out by it.
  const isSet = typeof minutes === 'number' && Check(GeneralSettingsSchema.properties.sessionTimeoutMinutes, minutes)
  return isSet ? minutes * 60 : remembered ? REMEMBERED_SECONDS : USUAL_SECONDS
}
