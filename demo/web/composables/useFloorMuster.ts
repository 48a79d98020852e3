import { computed, type Ref } from 'vue'
import { concerns } from '../emergency-title.js'
import type { Marker, MusterStatus } from '../floor-plan/marker.js'
import { statusTitles } from '../muster.js'
import { api } from '../services.js'
import type { DataResponse, Muster, Named } from '../types.js'
import { useLoadWhile } from './useLoadWhile.js'
import { useSiteStatus } from './useSiteStatus.js'

const EVERY_MS = 2000

/** The people who are safe and who are missing in the building of a plan, during an emergency or a drill there. */
export const useFloorMuster = (building: Ref<Named | undefined>) => {
  const { emergencies } = useSiteStatus()
  /** Of several, as on the muster page: the first one whose people gather, so that a medical alarm hides no fire. */
  const active = computed(() => {
    const { id } = building.value ?? {}
    const here = id === undefined ? [] : emergencies.value.filter((one) => concerns(one, id))
    return here.find(({ gathers }) => gathers !== false) ?? here[0] ?? null
  })
  const { data } = useLoadWhile(
    () => active.value?.id ?? null,
    (emergencyId, options) => api.emergency.muster<DataResponse<Muster>>({ query: { emergencyId }, ...options }),
    EVERY_MS
  )
  const muster = computed(() => (data.value?.emergency?.id === active.value?.id ? data.value : null))
  const statuses = computed((): ReadonlyMap<string, MusterStatus> => {
    const people = muster.value?.people ?? []
    return new Map(
      people.flatMap(({ transmitterId, status }) => (status === 'unknown' ? [] : [[transmitterId, status] as const]))
    )
  })
  return {
    withStatus: (markers: readonly Marker[]): readonly Marker[] =>
      statuses.value.size === 0
        ? markers
        : markers.map((marker) => ({ ...marker, muster: statuses.value.get(marker.id) ?? null })),
    /** The titles and numbers of the legend; null without an emergency. */
    counts: computed(() => {
      if (!active.value || !muster.value) return null
      const { missing, safe } = statusTitles(active.value.gathers !== false)
      const { summary } = muster.value
      return [
        { status: 'missing', title: missing, count: summary.missing },
        { status: 'safe', title: safe, count: summary.safe }
      ] as const
    })
  }
}
