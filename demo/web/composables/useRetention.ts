import { computed } from 'vue'
import { positionRetention, type Retention } from '../../privacy-settings.js'
import { call } from '../services.js'
import type { DataResponse } from '../types.js'
import { useLoaded } from './useLoad.js'

export const PRIVACY_PATH = '/api/mgmt/settings/privacy'

/** How long positions are kept, such as "7 days"; null until it has loaded. */
export const useRetention = () => {
  const { data } = useLoaded((options) => call<DataResponse<Retention>>('GET', PRIVACY_PATH, options))
  return computed(() => data.value && positionRetention(data.value))
}
