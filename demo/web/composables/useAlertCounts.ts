import { onScopeDispose, ref, watch } from 'vue'
import { call } from '../services.js'
import type { AlertCount, DataResponse } from '../types.js'
import { useLoaded } from './useLoad.js'
import { usePositions } from './usePositions.js'
import { useSession } from './useSession.js'

/** A change that the relay could not deliver is shown after this time. */
const REFRESH_MS = 30_000

/** Undefined before it has loaded. */
export const openAlerts = ref<number>()
/** Changes with every change of an alert. */
export const alertChanges = ref(0)

/** Keeps the numbers up to date while the component is mounted. */
export const useAlertUpdates = (): void => {
  if (!useSession().may('alerts.read')) return
  const { data, load } = useLoaded(
    (options) => call<DataResponse<readonly AlertCount[]>>('GET', '/api/alerts/summary', options),
    REFRESH_MS
  )
  watch(data, (counts) => {
    openAlerts.value = counts?.reduce((sum, { open }) => sum + open, 0)
    alertChanges.value += 1
  })
  const stopListening = usePositions().on('publication', ({ data: { type } }) => type === 'alerts' && void load())
  onScopeDispose(stopListening)
}
