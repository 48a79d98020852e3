import { computed, onScopeDispose, type Ref, ref, shallowRef, watch } from 'vue'
import type { AmbientEntry, PositionEntry } from '../../../schemas/realtime.js'
import { useNow } from '../../../src/ui/useNow.js'
import type { Marker } from '../floor-plan/draw.js'
import { Motion } from '../floor-plan/motion.js'
import { api, realtime } from '../services.js'
import type { DataResponse, FloorContext, ListResponse, Transmitter } from '../types.js'
import { useLoad, useLoaded } from './useLoad.js'

const FAINT_AFTER_MS = 4000
const AMBIENT_AGE_MS = 60_000
const CARRIERS_EVERY_MS = 60_000
const stillness = matchMedia('(prefers-reduced-motion: reduce)')

/** One floor: its plan and the moving markers on it. Subscribes to this floor's channel only, while it is shown. */
export const useFloor = (floorId: Ref<string | null>) => {
  const now = useNow()
  const motion = new Motion()
  const state = ref(realtime.state)
  const batches = ref(0)
  const ambient = shallowRef<readonly AmbientEntry[]>([])
  const heard = new Map<string, { readonly entry: AmbientEntry; readonly atMs: number }>()

  const context = useLoad((options) => api.context.floor.read<DataResponse<FloorContext>>(floorId.value ?? '', options))
  /** Without these, markers move but have no names. */
  const transmitters = useLoaded(
    (options) => api.transmitters.list<ListResponse<Transmitter>>({ query: { limit: 1000 }, ...options }),
    CARRIERS_EVERY_MS
  )
  const carriers = computed(() => new Map((transmitters.data.value ?? []).map((one) => [one.id, one])))

  const applyPositions = (entries: readonly PositionEntry[]): void => {
    const atMs = performance.now()
    for (const { transmitterId, position } of entries) motion.moveTo(String(transmitterId), position, atMs)
    batches.value += 1
  }

  /** The positions at load time; batches then update them. */
  watch(context.data, (loaded) => {
    if (loaded === null || loaded.floor.id !== floorId.value) return
    const known = loaded.positions.map((entry) => ({ ...entry, positionMethod: 'stored' }))
    const unseen = known.filter(({ transmitterId }) => realtime.store.get(transmitterId) === undefined)
    realtime.store.add(unseen)
    applyPositions(unseen)
  })

  /** The markers with their moving positions. Recomputed for each batch, not for each frame. People are drawn above assets. */
  const seen = computed((): readonly Marker[] => {
    void batches.value
    const markers = realtime.store.onFloor(floorId.value ?? '').flatMap(({ entry, receivedAtMs }): Marker[] => {
      const id = String(entry.transmitterId)
      const position = motion.positionOf(id)
      if (position === undefined) return []
      const { carriedBy, name, entity_type } = carriers.value.get(id) ?? {}
      const zoneId = entry.zoneId == null ? null : String(entry.zoneId)
      const isFaint = now.value - receivedAtMs > FAINT_AFTER_MS
      const kind = entity_type === 'asset' ? 'thing' : 'person'
      return [{ id, name: carriedBy ?? name ?? id, kind, position, zoneId, isFaint }]
    })
    return markers.sort((one, other) => other.kind.localeCompare(one.kind))
  })
  // While the relay is unavailable, the last known markers stay, faint.
  const markers = shallowRef<readonly Marker[]>([])
  watch([seen, state], ([list]) => {
    const isLive = state.value === 'online' || list.length >= markers.value.length
    markers.value = isLive ? list : markers.value.map((one) => ({ ...one, isFaint: true }))
  })

  const show = (id: string | null): void => {
    markers.value = []
    motion.clear()
    realtime.showFloor(id)
    if (id !== null) void context.load()
  }
  watch(floorId, show, { immediate: true })

  const listeners = [
    realtime.on('state', (changed) => {
      state.value = changed
    }),
    realtime.on('position-batch', (batch) => batch.floorId === floorId.value && applyPositions(batch.data)),
    realtime.on('gap', () => floorId.value !== null && void context.load()),
    realtime.on('ambient-batch', ({ data }) => {
      const atMs = Date.now()
      for (const entry of data) heard.set(String(entry.deviceId), { entry, atMs })
      for (const [id, last] of heard) if (atMs - last.atMs > AMBIENT_AGE_MS) heard.delete(id)
      ambient.value = [...heard.values()].map(({ entry }) => entry)
    })
  ]
  realtime.start()
  onScopeDispose(() => {
    for (const stopListening of listeners) stopListening()
    realtime.showFloor(null)
    realtime.stop()
  })

  return {
    context,
    markers,
    ambient,
    now,
    state,
    /** Moves all markers to their positions at this time. */
    advance: (nowMs: number): void => motion.advance(stillness.matches ? Number.POSITIVE_INFINITY : nowMs),
    /** Reconnects immediately instead of after the next delay. */
    reconnect: (): void => {
      realtime.stop()
      realtime.start()
    }
  }
}
