import { computed, type Ref, shallowRef, watch } from 'vue'
import { LEAD_MS, partAt, rangeOfPart } from '../history/playback-time.js'
import { call } from '../services.js'
import type { DataResponse, FloorTracks, Track } from '../types.js'
import { useLoadWhile } from './useLoadWhile.js'

/** Positions of about an hour. */
interface Part {
  readonly key: string
  readonly number: number
  readonly fromMs: number
  readonly tracks: readonly Track[]
}

interface Wanted {
  /** Null while nothing is played. */
  readonly floorId: Ref<string | null>
  readonly atMs: Ref<number>
  /** Nothing is stored later. */
  readonly endMs: Ref<number>
}

/** The stored positions of a floor around a time. The next part is requested before it is needed. */
export const usePlaybackTracks = ({ floorId, atMs, endMs }: Wanted) => {
  const parts = shallowRef<readonly Part[]>([])
  const keyOf = (number: number): string => `${floorId.value} ${number} ${endMs.value}`
  const partOf = (number: number): Part | undefined => parts.value.find(({ key }) => key === keyOf(number))
  const number = computed(() => partAt(atMs.value))
  const missing = computed((): number | null => {
    if (floorId.value === null) return null
    const isMissing = (one: number): boolean => !partOf(one) && rangeOfPart(one).fromMs + LEAD_MS < endMs.value
    return [number.value, number.value + 1].find(isMissing) ?? null
  })
  const { data, loads } = useLoadWhile(
    () => (missing.value === null ? null : keyOf(missing.value)),
    async (key, options): Promise<DataResponse<Part>> => {
      const [id = '', text] = key.split(' ')
      const { fromMs, toMs } = rangeOfPart(Number(text))
      const query = { from: fromMs, to: Math.min(toMs, endMs.value) }
      const path = `/api/positions/tracks/${encodeURIComponent(id)}`
      const response = await call<DataResponse<FloorTracks>>('GET', path, { ...options, query })
      return { data: { key, number: Number(text), fromMs, tracks: response.data.tracks } }
    }
  )
  watch(data, (loaded) => {
    if (loaded) parts.value = [...parts.value.filter((one) => Math.abs(one.number - loaded.number) <= 1), loaded]
  })
  return {
    /** The part that contains the time; null while it loads. */
    current: computed(() => partOf(number.value) ?? null),
    loads
  }
}
