import { computed, onScopeDispose, shallowRef, watch } from 'vue'
import { alertCountsIn } from '../alerts.js'
import { call } from '../services.js'
import type { AlertCount, DataResponse } from '../types.js'
import { useLoad } from './useLoad.js'
import { usePositions } from './usePositions.js'
import { useSession } from './useSession.js'

/** A change that the relay could not deliver is shown after this time. */
const REFRESH_MS = 30_000

/** Replaced with every change of an alert. Shared by the menu, the alerts and the dashboard. Undefined before it has loaded. */
const counts = shallowRef<readonly AlertCount[]>()
const open = computed(() => counts.value?.reduce((sum, count) => sum + count.open, 0))

/** The numbers of alerts. `load` requests them after a change by this page. */
export const useAlertCounts = (everyMs?: number) => {
  const { data, load } = useLoad(
    (options) => call<DataResponse<readonly AlertCount[]>>('GET', '/api/alerts/summary', options),
    everyMs
  )
  watch(data, (loaded) => {
    counts.value = loaded ?? counts.value
  })
  return { counts, open, load }
}

/** Keeps the numbers up to date while the component is mounted. */
export const useAlertUpdates = () => {
  const loaded = useAlertCounts(REFRESH_MS)
  if (!useSession().may('alerts.read')) return loaded
  void loaded.load()
  const positions = usePositions()
  const listeners = [
    positions.on('publication', ({ data }) => {
      counts.value = alertCountsIn(data) ?? counts.value
    }),
    positions.on('gap', ({ channel }) => channel === 'global:all' && void loaded.load())
  ]
  onScopeDispose(() => {
    for (const stopListening of listeners) stopListening()
  })
  return loaded
}
