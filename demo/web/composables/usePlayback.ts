import { computed, onScopeDispose, type Ref, ref, shallowRef, watch } from 'vue'
import type { Marker } from '../floor-plan/marker.js'
import { Playback } from '../history/playback.js'
import { clamp, dayAround, onDate, partAt, type StoredTime } from '../history/playback-time.js'
import { trailOf } from '../history/trail.js'
import type { FloorContext } from '../types.js'
import { usePlaybackTime } from './usePlaybackTime.js'
import { usePlaybackTracks } from './usePlaybackTracks.js'
import { useStoredFrom } from './useRetention.js'

export const SPEEDS = [1, 10, 60, 300] as const
/** After a pause of the browser, for example in a hidden tab, playback continues where it was. */
const MAX_FRAME_MS = 1000
/** The list and the time on the page change this often; the markers move in every frame. */
const SHOWN_EVERY_MS = 250
/** A time that is chosen with the slider is written to the URL when it has not changed for so long. */
const SETTLED_MS = 300

interface PlaybackOptions {
  readonly floorId: Ref<string | null>
  /** Null until it has loaded. */
  readonly plan: Ref<Pick<FloorContext, 'walls'> | null>
  readonly describe: (id: string) => Pick<Marker, 'name' | 'kind'>
}

/** Plays the stored days of a floor. */
export const usePlayback = ({ floorId, plan, describe }: PlaybackOptions) => {
  const { isOn, firstMs, open, close, write } = usePlaybackTime((ms) => {
    endMs.value = Date.now()
    seek(ms)
  })
  const isPlaying = ref(false)
  const speed = ref<number>(60)
  /** The time as shown, in milliseconds. */
  const atMs = ref(firstMs ?? Date.now())
  const markers = shallowRef<readonly Marker[]>([])
  /** The playback ends at the time at which it was opened. */
  const endMs = ref(Date.now())
  const storedFrom = useStoredFrom(isOn)
  const stored = computed((): StoredTime => ({ fromMs: storedFrom.value, toMs: endMs.value }))
  const playedFloor = computed(() => (isOn.value ? floorId.value : null))
  const { current, loads } = usePlaybackTracks({ floorId: playedFloor, atMs, endMs })
  const walls = computed(() => plan.value?.walls ?? [])
  const player = computed(
    () => current.value && { ...current.value, playback: new Playback(current.value.tracks, walls.value, describe) }
  )

  let currentMs = atMs.value
  let frameMs: number | null = null
  let timer: ReturnType<typeof setTimeout> | undefined
  onScopeDispose(() => clearTimeout(timer))

  /** Moves the markers; with `isShown`, the list and the time on the page too. */
  const move = (isShown: boolean): void => {
    if (isShown) atMs.value = currentMs
    player.value?.playback.seek(currentMs - player.value.fromMs)
    if (isShown && player.value) markers.value = player.value.playback.markers
  }
  const seek = (ms: number): void => {
    currentMs = clamp(ms, stored.value)
    move(true)
    clearTimeout(timer)
    timer = setTimeout(() => write(currentMs, true), SETTLED_MS)
  }
  watch(player, () => move(true))
  watch(playedFloor, () => {
    markers.value = []
  })
  watch(isOn, (isNowOn) => {
    frameMs = null
    isPlaying.value = isNowOn
  })
  // A link may lead to a time that is not stored any more.
  watch(stored, () => isOn.value && seek(currentMs))

  /** As for `FloorPlan`: moves the markers, and returns whether one has moved. */
  const advance = (nowMs: number): boolean => {
    const elapsedMs = Math.min(nowMs - (frameMs ?? nowMs), MAX_FRAME_MS)
    frameMs = nowMs
    if (!isPlaying.value || player.value === null) return false
    currentMs = Math.min(currentMs + elapsedMs * speed.value, endMs.value)
    if (currentMs === endMs.value) isPlaying.value = false
    const isDue = currentMs - atMs.value >= SHOWN_EVERY_MS * speed.value || partAt(currentMs) !== partAt(atMs.value)
    move(!isPlaying.value || isDue)
    if (isDue || !isPlaying.value) write(currentMs, !isPlaying.value)
    return true
  }

  return {
    isOn,
    isPlaying,
    speed,
    atMs,
    markers,
    loads,
    stored,
    /** The part of the shown day that can be played. */
    day: computed(() => dayAround(atMs.value, stored.value)),
    /** Whether the positions of the shown time have loaded. */
    isReady: computed(() => player.value !== null),
    advance,
    seek,
    /** The same time on another day. */
    showDate: (text: string): void => seek(onDate(currentMs, text) ?? currentMs),
    trail: (id: string, durationMs: number) => {
      const tracks = (current.value?.tracks ?? []).filter(({ transmitterId }) => transmitterId === id)
      const toMs = atMs.value - (current.value?.fromMs ?? 0)
      return trailOf(tracks, toMs - durationMs, toMs, walls.value)
    },
    /** Begins an hour before the end if the end is reached. */
    play: (): void => {
      if (currentMs >= endMs.value) seek(endMs.value - 60 * 60_000)
      isPlaying.value = true
    },
    pause: (): void => {
      isPlaying.value = false
      move(true)
      write(currentMs, true)
    },
    open,
    close
  }
}
