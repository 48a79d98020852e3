import { computed, type Ref, ref, shallowRef, watch } from 'vue'
import type { Marker } from '../floor-plan/marker.js'
import { Playback, trailsOf } from '../history/playback.js'
import { call } from '../services.js'
import type { DataResponse, FloorTracks } from '../types.js'
import { useLoadWhile } from './useLoadWhile.js'

export const SPEEDS = [1, 10, 30, 60] as const
/** After a pause of the browser, for example in a hidden tab, playback continues where it was. */
const MAX_FRAME_MS = 1000
/** The list and the time on the page change this often; the markers move in every frame. */
const SHOWN_EVERY_MS = 250

/** Plays the last hour of a floor. */
export const usePlayback = (floorId: Ref<string | null>, describe: (id: string) => Pick<Marker, 'name' | 'kind'>) => {
  const isOn = ref(false)
  const isPlaying = ref(false)
  const speed = ref<number>(30)
  /** Milliseconds after the start of the hour, as shown. */
  const offsetMs = ref(0)
  const markers = shallowRef<readonly Marker[]>([])

  const { data, loads } = useLoadWhile(
    () => (isOn.value ? floorId.value : null),
    (id, options) => call<DataResponse<FloorTracks>>('GET', `/api/positions/tracks/${encodeURIComponent(id)}`, options)
  )
  const startMs = computed(() => (data.value ? Date.parse(data.value.from) : 0))
  const lengthMs = computed(() => (data.value ? Date.parse(data.value.to) - startMs.value : 0))

  let playback = new Playback([], describe)
  let currentMs = 0
  let frameMs: number | null = null

  /** Moves the markers; with `isShown`, the list and the time on the page too. */
  const move = (isShown: boolean): void => {
    playback.seek(currentMs)
    if (!isShown) return
    offsetMs.value = currentMs
    markers.value = playback.markers
  }
  const seek = (ms: number): void => {
    currentMs = Math.min(Math.max(ms, 0), lengthMs.value)
    move(true)
  }
  watch(data, (loaded) => {
    playback = new Playback(loaded?.tracks ?? [], describe)
    if (loaded === null) markers.value = []
    else seek(currentMs)
  })

  /** As for `FloorPlan`: moves the markers, and returns whether one has moved. */
  const advance = (nowMs: number): boolean => {
    const elapsedMs = Math.min(nowMs - (frameMs ?? nowMs), MAX_FRAME_MS)
    frameMs = nowMs
    if (!isPlaying.value || data.value === null) return false
    currentMs = Math.min(currentMs + elapsedMs * speed.value, lengthMs.value)
    if (currentMs === lengthMs.value) isPlaying.value = false
    move(!isPlaying.value || currentMs - offsetMs.value >= SHOWN_EVERY_MS * speed.value)
    return true
  }

  return {
    isOn,
    isPlaying,
    speed,
    offsetMs,
    startMs,
    lengthMs,
    markers,
    loads,
    advance,
    seek,
    trails: (durationMs: number) => trailsOf(data.value?.tracks ?? [], offsetMs.value - durationMs, offsetMs.value),
    /** From the start if the end is reached. */
    play: (): void => {
      if (currentMs >= lengthMs.value) seek(0)
      isPlaying.value = true
    },
    pause: (): void => {
      isPlaying.value = false
      move(true)
    },
    open: (): void => {
      currentMs = 0
      frameMs = null
      isOn.value = true
      isPlaying.value = true
    },
    close: (): void => {
      isOn.value = false
      isPlaying.value = false
    }
  }
}
