import { computed, onScopeDispose, shallowRef, watch } from 'vue'
import { call } from '../services.js'
import type { AlertCount, DataResponse } from '../types.js'
import { useLoaded } from './useLoad.js'
import { usePositions } from './usePositions.js'
import { useSession } from './useSession.js'

/** A change that the relay could not deliver is shown after this time. */
const REFRESH_MS = 30_000

/** Replaced with every change of an alert. Undefined before it has loaded. */
export const alertCounts = shallowRef<readonly AlertCount[]>()
/** Undefined before it has loaded. */
export const openAlerts = computed(() => alertCounts.value?.reduce((sum, count) => sum + count.open, 0))

/** The counts in a publication; null if it is another one. */
const alertCountsIn = ({ type, data }: { readonly type: string; readonly data?: unknown }) =>
  type === 'alerts' && Array.isArray(data) && data.every(isAlertCount) ? data : null
const isAlertCount = (entry: unknown): entry is AlertCount =>
  typeof entry === 'object' && entry !== null && 'open' in entry && typeof entry.open === 'number' && 'kind' in entry

/** Keeps the numbers up to date while the component is mounted. */
export const useAlertUpdates = (): void => {
  if (!useSession().may('alerts.read')) return
  const { data, load } = useLoaded(
    (options) => call<DataResponse<readonly AlertCount[]>>('GET', '/api/alerts/summary', options),
    REFRESH_MS
  )
  watch(data, (loaded) => {
    alertCounts.value = loaded ?? alertCounts.value
  })
  const positions = usePositions()
  const listeners = [
    positions.on('publication', ({ data: published }) => {
      alertCounts.value = alertCountsIn(published) ?? alertCounts.value
    }),
    positions.on('gap', ({ channel }) => channel === 'global:all' && void load())
  ]
  onScopeDispose(() => {
    for (const stopListening of listeners) stopListening()
  })
}
