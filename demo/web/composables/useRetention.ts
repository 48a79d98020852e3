import { computed, type Ref } from 'vue'
import { positionRetention, type Retention } from '../../privacy-settings.js'
import { call } from '../services.js'
import type { DataResponse } from '../types.js'
import { useLoaded } from './useLoad.js'
import { useLoadWhile } from './useLoadWhile.js'

export const PRIVACY_PATH = '/api/mgmt/settings/privacy'

/** How long positions are kept, such as "7 days"; null until it has loaded. */
export const useRetention = () => {
  const { data } = useLoaded((options) => call<DataResponse<Retention>>('GET', PRIVACY_PATH, options))
  return computed(() => data.value && positionRetention(data.value))
}

const HOUR_MS = 60 * 60_000

/** The time from which positions are stored, in milliseconds; 0 until it has loaded. Requested while `isWanted`. */
export const useStoredFrom = (isWanted: Ref<boolean>) => {
  const { data } = useLoadWhile(
    () => (isWanted.value ? PRIVACY_PATH : null),
    (path, options) => call<DataResponse<Retention>>('GET', path, options)
  )
  return computed(() => {
    if (!data.value) return 0
    const { positionHistoryDays, maxPositionHours } = data.value
    const hours = Math.min(positionHistoryDays * 24, maxPositionHours ?? Number.POSITIVE_INFINITY)
    return Date.now() - hours * HOUR_MS
  })
}
