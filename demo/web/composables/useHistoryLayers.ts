import { computed, type Ref, shallowRef, watch } from 'vue'
import { heatMapLayer, heatOf } from '../floor-plan/heat-map-layer.js'
import type { LayerChoice } from '../floor-plan/layer.js'
import type { Marker } from '../floor-plan/marker.js'
import { trailLayer } from '../floor-plan/trail-layer.js'
import { trailOf } from '../history/trail.js'
import { call } from '../services.js'
import type { DataResponse, FloorContext, FloorTracks, HeatMap } from '../types.js'
import { useLoadWhile } from './useLoadWhile.js'
import type { usePlayback } from './usePlayback.js'

const HEAT_EVERY_MS = 60_000
const TRAILS_EVERY_MS = 5000
const TRAIL_MINUTES = 10
/** During a playback, the heat map changes after so much of its time, and not more often than every few seconds. */
const HEAT_STEP_MS = 5 * 60_000
const HEAT_STEP_SECONDS = 4

interface HistoryLayerOptions {
  readonly floorId: Ref<string | null>
  /** Null until it has loaded. */
  readonly plan: Ref<FloorContext | null>
  readonly choice: Ref<LayerChoice>
  readonly playback: ReturnType<typeof usePlayback>
  /** The markers that are shown, at which the trail ends. */
  readonly markers: Ref<readonly Marker[]>
  readonly selected: Ref<string | null>
}

/** The heat map and the trail of the selected marker, which are requested while they are switched on. */
export const useHistoryLayers = ({ floorId, plan, choice, playback, markers, selected }: HistoryLayerOptions) => {
  const heatTo = computed(() => {
    if (!playback.isOn.value) return ''
    const stepMs = Math.max(HEAT_STEP_MS, playback.speed.value * HEAT_STEP_SECONDS * 1000)
    return String(Math.floor(playback.atMs.value / stepMs) * stepMs)
  })
  const loadedHeat = useLoadWhile(
    () => (choice.value.heat && floorId.value !== null ? `${floorId.value} ${heatTo.value}` : null),
    (key, options) => {
      const [id = '', to] = key.split(' ')
      const query = to ? { to } : {}
      return call<DataResponse<HeatMap>>('GET', `/api/positions/heat/${encodeURIComponent(id)}`, { ...options, query })
    },
    HEAT_EVERY_MS
  )
  /** The previous map stays until the next one has loaded. */
  const heatMap = shallowRef<HeatMap | null>(null)
  watch(loadedHeat.data, (data) => {
    if (data) heatMap.value = data
  })
  watch([floorId, () => choice.value.heat, playback.isOn], () => {
    heatMap.value = null
  })
  const heat = computed(() => (heatMap.value && plan.value ? heatOf(heatMap.value, plan.value) : null))

  const recent = useLoadWhile(
    () =>
      choice.value.trails && !playback.isOn.value && floorId.value !== null && selected.value !== null
        ? `${floorId.value} ${selected.value}`
        : null,
    (key, options) => {
      const [id = '', transmitterId] = key.split(' ')
      const query = { minutes: TRAIL_MINUTES, transmitterId }
      return call<DataResponse<FloorTracks>>('GET', `/api/positions/tracks/${encodeURIComponent(id)}`, {
        ...options,
        query
      })
    },
    TRAILS_EVERY_MS
  )
  const trail = computed(() => {
    const lengthMs = TRAIL_MINUTES * 60_000
    if (!choice.value.trails || selected.value === null) return null
    if (playback.isOn.value) return playback.trail(selected.value, lengthMs)
    return recent.data.value && trailOf(recent.data.value.tracks, 0, lengthMs, plan.value?.walls ?? [])
  })
  return {
    loads: computed(() => [...loadedHeat.loads.value, ...recent.loads.value]),
    /** Null while it is off or has not loaded. */
    heat,
    heatLayers: computed(() => (heat.value ? [heatMapLayer(heat.value)] : [])),
    trailLayers: computed(() => {
      if (!trail.value) return []
      const marker = markers.value.find(({ id }) => id === selected.value)?.position ?? null
      return [trailLayer(trail.value, marker, plan.value?.walls ?? [])]
    })
  }
}
