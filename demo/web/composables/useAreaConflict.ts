import type { ApiError } from 'gatehouse-client'
import { type Ref, shallowRef } from 'vue'
import { areaOf, type Corner, cornersOf } from '../../../schemas/polygon.js'
import type { Values } from '../form-fields.js'
import type { Zone } from '../types.js'
import { type Conflict, changedRecord, optionsFor } from './useEditConflict.js'

const FIELD = 'polygon'

const textOf = (corners: readonly Corner[]): string =>
  corners.length === 0 ? 'no area' : `${corners.length} points, ${areaOf(corners).toFixed(1)} m²`

/** Two users edit one zone: the second area is rejected with the current zone, and the user chooses one of the areas. */
export const useAreaConflict = (zone: Zone & Values, corners: Ref<readonly Corner[]>) => {
  let based = cornersOf(zone.polygon ?? [])
  const conflict = shallowRef<Conflict | null>(null)
  const options = shallowRef(optionsFor(zone))
  /** The area of the other user, to compare it on the plan; null if it is not in question. */
  const theirs = shallowRef<readonly Corner[] | null>(null)
  return {
    conflict,
    /** The options of the next request to save. */
    options,
    theirs,
    /** Whether the error is a conflict, which is shown instead of the error. */
    detect: (error: ApiError | null): boolean => {
      const changed = changedRecord(error)
      // A zone that was moved has another plan, so that the corners mean something else.
      if (changed === null || changed.current.floorId !== zone.floorId) return false
      const { changedBy, current } = changed
      const area = cornersOf((current as unknown as Zone).polygon ?? [])
      const isOther = JSON.stringify(area) !== JSON.stringify(based)
      const field = { name: FIELD, label: 'Area', theirs: area, isOwnChange: true }
      const texts = { theirText: textOf(area), ownText: textOf(corners.value) }
      conflict.value = { changedBy, current, fields: isOther ? [{ ...field, ...texts }] : [], own: new Set([FIELD]) }
      theirs.value = isOther ? area : null
      return true
    },
    /** Returns the chosen area: the own one is to be saved, that of the other user is stored already. */
    resolve: (): { readonly corners: readonly Corner[]; readonly isOwn: boolean } => {
      const chosen = conflict.value
      const area = theirs.value ?? based
      if (chosen !== null) {
        options.value = optionsFor(chosen.current)
        based = [...area]
        conflict.value = null
        theirs.value = null
      }
      const isOwn = chosen?.own.has(FIELD) ?? true
      return { corners: isOwn ? corners.value : area, isOwn }
    }
  }
}
