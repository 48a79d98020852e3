import { computed, onScopeDispose, ref, shallowRef, watch } from 'vue'
import { useNow } from '../../../src/ui/useNow.js'
import { call, positions } from '../services.js'
import type { DataResponse, SiteStatus } from '../types.js'
import { useLoad } from './useLoad.js'
import { useSession } from './useSession.js'

const EVERY_MS = 2000
/** Older positions are marked as such on every page. */
export const OLD_AFTER_MS = 5000

/** The last known state of the site, and the difference between the clocks of the backend and of this browser. */
const status = shallowRef<SiteStatus | null>(null)
const skewMs = ref(0)
/** The time of the last response by the clock of this browser; null before the first one. */
const answeredMs = ref<number | null>(null)

/** Changes when an emergency or a drill starts or ends. */
export const activeEmergencyIds = computed(() => status.value?.emergencies.map(({ id }) => id).join(' '))

/** Keeps the state of the site up to date while the component is mounted: on every page. */
export const useSiteStatusUpdates = () => {
  const { isSignedIn, may } = useSession()
  const loaded = useLoad(
    async (options): Promise<DataResponse<SiteStatus | null>> =>
      may('emergency.read') ? call('GET', '/api/context/status', options) : { data: null },
    EVERY_MS
  )
  watch(loaded.data, (data) => {
    status.value = data
    if (data === null) return
    answeredMs.value = Date.now()
    skewMs.value = Date.parse(data.now) - answeredMs.value
  })
  void loaded.load()
  watch(isSignedIn, () => void loaded.load())
  // The menu keeps the connection open.
  const stopListening = positions.on(
    'publication',
    ({ data }) => data.type === 'emergency-changed' && void loaded.load()
  )
  const loadIfVisible = (): unknown => !document.hidden && loaded.load()
  document.addEventListener('visibilitychange', loadIfVisible)
  onScopeDispose(() => {
    stopListening()
    document.removeEventListener('visibilitychange', loadIfVisible)
  })
  return loaded
}

/**
 * The active emergencies, and the age of positions. The age grows with the clock of this browser, so that positions become old
 * also while the backend does not respond.
 */
export const useSiteStatus = () => {
  const now = useNow()
  /** The time by the clock of the backend. */
  const backendNow = computed(() => now.value + skewMs.value)
  const newestMs = computed(() => (status.value?.lastPositionAt ? Date.parse(status.value.lastPositionAt) : null))
  return {
    backendNow,
    /** The most dangerous first. Empty also while they are not known. */
    emergencies: computed(() => status.value?.emergencies ?? []),
    /** Whether it is known which emergencies are active. */
    isKnown: computed(() => status.value !== null),
    answeredMs,
    /** The time of the newest position by the clock of this browser; null without positions. */
    newestMs: computed(() => newestMs.value && newestMs.value - skewMs.value),
    arePositionsOld: computed(() => newestMs.value !== null && backendNow.value - newestMs.value > OLD_AFTER_MS)
  }
}
