import { computed, type Ref } from 'vue'
import { heatMapLayer } from '../floor-plan/heat-map-layer.js'
import type { LayerChoice } from '../floor-plan/layer.js'
import type { Marker } from '../floor-plan/marker.js'
import { trailLayer } from '../floor-plan/trail-layer.js'
import { trailsOf } from '../history/playback.js'
import { call } from '../services.js'
import type { DataResponse, FloorContext, FloorTracks, HeatMap } from '../types.js'
import { useLoadWhile } from './useLoadWhile.js'
import type { usePlayback } from './usePlayback.js'

const HEAT_EVERY_MS = 60_000
const TRAILS_EVERY_MS = 5000
const TRAIL_MINUTES = 10

interface HistoryLayerOptions {
  readonly floorId: Ref<string | null>
  /** Null until it has loaded. */
  readonly plan: Ref<FloorContext | null>
  readonly choice: Ref<LayerChoice>
  readonly playback: ReturnType<typeof usePlayback>
  /** The markers that are shown, at which the trails end. */
  readonly markers: Ref<readonly Marker[]>
  readonly selected: Ref<string | null>
}

/** The heat map and the trails, which are requested while they are switched on. */
export const useHistoryLayers = ({ floorId, plan, choice, playback, markers, selected }: HistoryLayerOptions) => {
  const heat = useLoadWhile(
    () => (choice.value.heat ? floorId.value : null),
    (id, options) => call<DataResponse<HeatMap>>('GET', `/api/positions/heat/${encodeURIComponent(id)}`, options),
    HEAT_EVERY_MS
  )
  const recent = useLoadWhile(
    () => (choice.value.trails && !playback.isOn.value ? floorId.value : null),
    (id, options) =>
      call<DataResponse<FloorTracks>>('GET', `/api/positions/tracks/${encodeURIComponent(id)}`, {
        ...options,
        query: { minutes: TRAIL_MINUTES }
      }),
    TRAILS_EVERY_MS
  )
  const trails = computed(() => {
    if (playback.isOn.value) return playback.trails(TRAIL_MINUTES * 60_000)
    return trailsOf(recent.data.value?.tracks ?? [], 0, Number.POSITIVE_INFINITY)
  })
  return {
    loads: computed(() => [...heat.loads.value, ...recent.loads.value]),
    /** Empty while it is off or has not loaded. */
    heatLayers: computed(() => (heat.data.value && plan.value ? [heatMapLayer(heat.data.value, plan.value)] : [])),
    trailLayers: computed(() => (choice.value.trails ? [trailLayer(trails.value, markers.value, selected.value)] : []))
  }
}
