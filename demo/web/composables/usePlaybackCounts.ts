import { computed, type Ref, shallowRef, watch } from 'vue'
import { call } from '../services.js'
import type { CountedBuilding, DataResponse } from '../types.js'
import { useLoadWhile } from './useLoadWhile.js'
import type { usePlayback } from './usePlayback.js'

const STEP_MS = 60_000
const STEP_SECONDS = 2

/** The buildings with the number of people on each floor: now, or at the time of the playback. */
export const usePlaybackCounts = (
  buildings: Ref<readonly CountedBuilding[]>,
  playback: ReturnType<typeof usePlayback>
) => {
  const loaded = useLoadWhile<readonly { readonly floorId: string; readonly people: number }[]>(
    () => {
      const stepMs = Math.max(STEP_MS, playback.speed.value * STEP_SECONDS * 1000)
      return playback.isOn.value ? String(Math.floor(playback.atMs.value / stepMs) * stepMs) : null
    },
    (at, options) =>
      call<DataResponse<readonly { readonly floorId: string; readonly people: number }[]>>(
        'GET',
        '/api/positions/people',
        {
          ...options,
          query: { at }
        }
      )
  )
  /** The previous counts stay until the next ones have loaded. */
  const people = shallowRef<ReadonlyMap<string, number> | null>(null)
  watch(loaded.data, (data) => {
    if (data) people.value = new Map(data.map((one) => [one.floorId, one.people]))
  })
  watch(playback.isOn, () => {
    people.value = null
  })
  return computed((): readonly CountedBuilding[] => {
    if (!playback.isOn.value) return buildings.value
    const at = people.value
    return buildings.value.map((building) => ({
      ...building,
      floors: building.floors.map((floor) => ({ ...floor, people: at === null ? null : (at.get(floor.id) ?? 0) }))
    }))
  })
}
