import { isEmergencyType, TYPE_TITLES } from '../emergency-types.js'
import { labelOf } from './form-fields.js'
import type { Emergency } from './types.js'

/** The title of an emergency or a drill; without one, its type. */
export const titleOf = ({ title, type }: Emergency): string =>
  title || (isEmergencyType(type) ? TYPE_TITLES[type] : labelOf(type || 'emergency'))

export const kindOf = ({ isDrill }: Emergency): 'Drill' | 'Emergency' => (isDrill ? 'Drill' : 'Emergency')

/** "Fire in Main House". */
export const titleAndPlace = (emergency: Emergency): string => `${titleOf(emergency)} in ${placeOf(emergency)}`

const placeOf = ({ buildingName }: Emergency): string => buildingName ?? 'the entire site'

/** How it ended. */
export const outcomeOf = ({ outcome, resolution }: Emergency): string =>
  [outcome === 'mistake' && 'Raised by mistake', resolution].filter(Boolean).join(': ')

/** Whether people in this building must act; also if the building is not known. */
export const concerns = ({ buildingId }: Emergency, ofBuilding: string | null): boolean =>
  buildingId == null || ofBuilding === null || String(buildingId) === ofBuilding
