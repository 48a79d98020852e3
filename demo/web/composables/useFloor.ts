import { computed, onScopeDispose, type Ref, shallowRef, watch } from 'vue'
import type { PositionEntry } from '../../../schemas/realtime.js'
import { useNow } from '../../../src/ui/useNow.js'
import type { Marker } from '../floor-plan/draw.js'
import { Motion } from '../floor-plan/motion.js'
import { api, realtime } from '../services.js'
import type { Answer, FloorContext, ListAnswer, Transmitter } from '../types.js'
import { useLoad, useLoaded } from './useLoad.js'
import { useRealtime } from './useRealtime.js'

const FAINT_AFTER_MS = 4000
const CARRIERS_EVERY_MS = 60_000
const stillness = matchMedia('(prefers-reduced-motion: reduce)')

/** One floor: its plan, who is on it, and how they move. Only this floor's channel is listened to. */
export const useFloor = (floorId: Ref<string | null>) => {
  const { state } = useRealtime()
  const now = useNow()
  const motion = new Motion()
  const batches = shallowRef(0)

  const context = useLoad((options) => api.context.floor.read<Answer<FloorContext>>(floorId.value ?? '', options))
  /** Without an answer nobody has a name; they still move. */
  const transmitters = useLoaded(
    (options) => api.transmitters.list<ListAnswer<Transmitter>>({ query: { limit: 1000 }, ...options }),
    CARRIERS_EVERY_MS
  )
  const carriers = computed(() => new Map((transmitters.data.value ?? []).map((one) => [one.id, one])))

  const place = (entries: readonly PositionEntry[]): void => {
    const atMs = performance.now()
    for (const { transmitterId, position } of entries) motion.moveTo(String(transmitterId), position, atMs)
    batches.value += 1
  }

  /** Who was there when the plan was read; batches bring everybody who moves. */
  watch(context.data, (loaded) => {
    if (loaded === null || loaded.floor.id !== floorId.value) return
    const known = loaded.positions.map((entry) => ({ ...entry, positionMethod: 'stored' }))
    const unseen = known.filter(({ transmitterId }) => realtime.store.get(transmitterId) === undefined)
    realtime.store.add(unseen)
    place(unseen)
  })

  /** Each with its place, which moves: made anew for a batch, and not for a frame. People stand in front of things. */
  const seen = computed((): readonly Marker[] => {
    void batches.value
    const markers = realtime.store.onFloor(floorId.value ?? '').flatMap(({ entry, receivedAtMs }): Marker[] => {
      const id = String(entry.transmitterId)
      const position = motion.placeOf(id)
      if (position === undefined) return []
      const { carriedBy, name, entity_type } = carriers.value.get(id) ?? {}
      const zoneId = entry.zoneId == null ? null : String(entry.zoneId)
      const isFaint = now.value - receivedAtMs > FAINT_AFTER_MS
      const kind = entity_type === 'asset' ? 'thing' : 'person'
      return [{ id, name: carriedBy ?? name ?? id, kind, position, zoneId, isFaint }]
    })
    return markers.sort((one, other) => other.kind.localeCompare(one.kind))
  })
  // While the relay is away nobody leaves: the last that is known of them stays, faint.
  const markers = shallowRef<readonly Marker[]>([])
  watch([seen, state], ([list]) => {
    const isLive = state.value === 'online' || list.length >= markers.value.length
    markers.value = isLive ? list : markers.value.map((one) => ({ ...one, isFaint: true }))
  })

  watch(
    floorId,
    (id) => {
      markers.value = []
      motion.clear()
      realtime.showFloor(id)
      if (id !== null) void context.load()
    },
    { immediate: true }
  )

  /** True while anybody is on the way. */
  const advance = (nowMs: number): boolean => motion.advance(stillness.matches ? Number.POSITIVE_INFINITY : nowMs)

  const unplaced = realtime.on('position-batch', (batch) => {
    if (batch.floorId === floorId.value) place(batch.data)
  })
  const unfilled = realtime.on('gap', () => {
    if (floorId.value !== null) void context.load()
  })
  onScopeDispose(() => {
    unplaced()
    unfilled()
    realtime.showFloor(null)
  })

  return { context, markers, advance, now }
}
