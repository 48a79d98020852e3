import { computed, onScopeDispose, type Ref, watch } from 'vue'
import { call } from '../services.js'
import type { DataResponse } from '../types.js'
import { useLoad } from './useLoad.js'
import { usePositions } from './usePositions.js'

/** A user who joins a floor that is watched already is not reported. */
const REFRESH_MS = 30_000

/** The names of the users who watch a floor. Empty while they are unknown. */
export const useWatchers = (floorId: Ref<string | null>) => {
  const { data, load } = useLoad(
    (options) => call<DataResponse<readonly string[] | null>>('GET', `/api/floors/${floorId.value}/watchers`, options),
    REFRESH_MS
  )
  const loadIfShown = (): void => {
    if (floorId.value !== null) void load()
  }
  watch(floorId, loadIfShown, { immediate: true })
  const stopListening = usePositions().on(
    'publication',
    ({ data: { type } }) => type === 'watchers-changed' && loadIfShown()
  )
  onScopeDispose(stopListening)
  return computed(() => data.value ?? [])
}
