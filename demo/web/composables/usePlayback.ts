import { computed, type Ref, ref, shallowRef, watch } from 'vue'
import type { Marker } from '../floor-plan/marker.js'
import { PastFloor, trailOf } from '../floor-plan/tracks.js'
import { call } from '../services.js'
import type { DataResponse, FloorTracks } from '../types.js'
import { useLoadWhile } from './useLoadWhile.js'

/** The backend keeps the positions of this time. */
export const KEPT_MS = 15 * 60_000
export const SPEEDS = [1, 10, 60] as const
const TRAIL_EVERY_MS = 5000
/** After a pause of the browser, for example in a hidden tab, playback continues where it was. */
const MAX_FRAME_MS = 1000
/** The list and the time on the page change this often; the markers move in every frame. */
const SHOWN_EVERY_MS = 250

interface Options {
  readonly floorId: Ref<string | null>
  readonly selected: Ref<string | null>
  readonly describe: (id: string) => Pick<Marker, 'name' | 'kind'>
}

/** The tracks of the last 15 minutes before a time. */
const tracksOf = (floorId: string, to: number, signal: AbortSignal, transmitterId?: string) =>
  call<DataResponse<FloorTracks>>('GET', `/api/positions/tracks/${encodeURIComponent(floorId)}`, {
    query: { from: to - KEPT_MS, to, transmitterId },
    signal
  })

/** Plays the last 15 minutes of a floor, and shows the trail of the selected marker. */
export const usePlayback = ({ floorId, selected, describe }: Options) => {
  const isOn = ref(false)
  const isPlaying = ref(false)
  const speed = ref<number>(10)
  /** The playback ends at the time at which it was opened. */
  const endMs = ref(0)
  const atMs = ref(0)
  const markers = shallowRef<readonly Marker[]>([])
  const stored = useLoadWhile(
    () => (isOn.value && floorId.value !== null ? `${endMs.value} ${floorId.value}` : null),
    (_key, { signal }) => tracksOf(floorId.value ?? '', endMs.value, signal)
  )
  const past = computed(() => stored.data.value && new PastFloor(stored.data.value, describe))
  const recent = useLoadWhile(
    () => (!isOn.value && floorId.value && selected.value ? `${floorId.value} ${selected.value}` : null),
    (key, { signal }) => {
      const [id = '', transmitterId] = key.split(' ')
      return tracksOf(id, Date.now(), signal, transmitterId)
    },
    TRAIL_EVERY_MS
  )

  let currentMs = 0
  let frameMs: number | null = null
  /** Moves the markers; with `isShown`, the list and the time on the page too. */
  const move = (isShown: boolean): void => {
    past.value?.seek(currentMs)
    if (!isShown) return
    atMs.value = currentMs
    markers.value = past.value?.markers ?? []
  }
  const seek = (ms: number): void => {
    currentMs = Math.min(Math.max(ms, endMs.value - KEPT_MS), endMs.value)
    move(true)
  }
  watch(past, () => move(true))

  return {
    isOn,
    isPlaying,
    speed,
    endMs,
    atMs,
    markers,
    loads: computed(() => [...stored.loads.value, ...recent.loads.value]),
    isReady: computed(() => past.value !== null),
    /** The trail of the selected marker, up to the shown time. */
    trail: computed(() => {
      const loaded = isOn.value ? stored.data.value : recent.data.value
      if (!loaded || selected.value === null) return []
      return trailOf(loaded, selected.value, isOn.value ? atMs.value : Date.parse(loaded.to), KEPT_MS)
    }),
    /** As for `FloorPlan`: moves the markers, and returns whether one has moved. */
    advance: (nowMs: number): boolean => {
      const elapsedMs = Math.min(nowMs - (frameMs ?? nowMs), MAX_FRAME_MS)
      frameMs = nowMs
      if (!isPlaying.value || past.value === null) return false
      currentMs = Math.min(currentMs + elapsedMs * speed.value, endMs.value)
      isPlaying.value = currentMs < endMs.value
      move(!isPlaying.value || currentMs - atMs.value >= SHOWN_EVERY_MS * speed.value)
      return true
    },
    seek,
    /** Begins again if the end is reached. */
    play: (): void => {
      if (currentMs >= endMs.value) seek(endMs.value - KEPT_MS)
      isPlaying.value = true
    },
    pause: (): void => {
      isPlaying.value = false
      move(true)
    },
    open: (): void => {
      endMs.value = Date.now()
      isOn.value = true
      isPlaying.value = true
      seek(endMs.value - KEPT_MS)
    },
    close: (): void => {
      isOn.value = false
      isPlaying.value = false
      markers.value = []
    }
  }
}
