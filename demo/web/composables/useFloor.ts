import { computed, onScopeDispose, type Ref, shallowRef, watch } from 'vue'
import type { PositionEntry } from '../../../schemas/realtime.js'
import { useNow } from '../../../src/ui/useNow.js'
import type { Marker } from '../floor-plan/draw.js'
import { Motion } from '../floor-plan/motion.js'
import type { Plan } from '../floor-plan/plan.js'
import { api, realtime } from '../services.js'
import type { Answer, FloorContext } from '../types.js'
import { useDirectory } from './useDirectory.js'
import { useLoad } from './useLoad.js'
import { useRealtime } from './useRealtime.js'

/** Somebody or something on the floor, as of the last second. */
export interface Seen {
  readonly id: string
  readonly name: string
  readonly kind: 'person' | 'thing'
  readonly zoneId: string | null
  readonly isFaint: boolean
}

const FAINT_AFTER_MS = 4000
const stillness = matchMedia('(prefers-reduced-motion: reduce)')

/** One floor: its plan, who is on it, and how they move. Only this floor's channel is listened to. */
export const useFloor = (floorId: Ref<string | null>) => {
  const { carrierOf } = useDirectory()
  const { state } = useRealtime()
  const now = useNow()
  const motion = new Motion()
  const batches = shallowRef(0)

  const context = useLoad((options) => api.context.floor.read<Answer<FloorContext>>(floorId.value ?? '', options))
  const plan = computed(() => (context.data.value ? planOf(context.data.value) : null))

  const place = (entries: readonly PositionEntry[]): void => {
    const atMs = performance.now()
    for (const { transmitterId, position } of entries) motion.moveTo(String(transmitterId), position, atMs)
    batches.value += 1
  }

  /** Who was there when the plan was read; batches bring everybody who moves. */
  watch(context.data, (loaded) => {
    if (loaded === null || loaded.floor.id !== floorId.value) return
    const known = loaded.positions.map((entry) => ({ ...entry, positionMethod: 'stored', floorId: loaded.floor.id }))
    const unseen = known.filter(({ transmitterId }) => realtime.store.get(transmitterId) === undefined)
    realtime.store.add(unseen)
    place(unseen)
  })

  watch(
    floorId,
    (id) => {
      motion.clear()
      realtime.showFloor(id)
      if (id !== null) void context.load()
    },
    { immediate: true }
  )

  const seen = computed((): readonly Seen[] => {
    void batches.value
    const live = realtime.store.onFloor(floorId.value ?? '')
    return live.map(({ entry, receivedAtMs }) => {
      const id = String(entry.transmitterId)
      const zoneId = entry.zoneId == null ? null : String(entry.zoneId)
      return { id, ...carrierOf(id), zoneId, isFaint: now.value - receivedAtMs > FAINT_AFTER_MS }
    })
  })
  // While the relay is away nobody leaves: the last that is known of them stays, faint.
  const shown = shallowRef<readonly Seen[]>([])
  watch([seen, state], ([list]) => {
    const isLive = state.value === 'online' || list.length >= shown.value.length
    shown.value = isLive ? list : shown.value.map((one) => ({ ...one, isFaint: true }))
  })
  watch(floorId, () => {
    shown.value = []
  })

  const counts = computed((): ReadonlyMap<string, number> => {
    const inside = new Map<string, number>()
    for (const { zoneId, kind } of shown.value) {
      if (zoneId !== null && kind === 'person') inside.set(zoneId, (inside.get(zoneId) ?? 0) + 1)
    }
    return inside
  })

  /** Each with its place, which moves: made anew for a batch, and not for a frame. People stand in front of things. */
  const markers = computed((): readonly Marker[] =>
    shown.value
      .flatMap((one) => {
        const position = motion.placeOf(one.id)
        return position ? [{ ...one, position }] : []
      })
      .sort((one, other) => Number(one.kind === 'person') - Number(other.kind === 'person'))
  )
  /** True while anybody is on the way. */
  const advance = (nowMs: number): boolean => motion.advance(stillness.matches ? Number.POSITIVE_INFINITY : nowMs)

  const stops = [
    realtime.on('position-batch', (batch) => {
      if (batch.floorId === floorId.value) place(batch.data)
    }),
    realtime.on('gap', () => {
      if (floorId.value !== null) void context.load()
    })
  ]
  onScopeDispose(() => {
    for (const stop of stops) stop()
    realtime.showFloor(null)
  })

  return { plan, context, shown, counts, markers, advance, now }
}

const planOf = ({ floor, walls, zones, receivers }: FloorContext): Plan => ({
  floorId: floor.id,
  name: floor.name,
  imageUrl: floor.imageAt === null ? null : `${floor.imageUrl}?v=${Date.parse(floor.imageAt)}`,
  width: floor.width,
  height: floor.height,
  walls,
  zones: zones.flatMap(({ id, name, type, polygon, isRestricted, isMusterPoint }) => {
    const shape = { isRestricted: isRestricted === true, isMusterPoint: isMusterPoint === true }
    return polygon === null ? [] : [{ id, name, kind: type ?? '', polygon, ...shape }]
  }),
  receivers: receivers.flatMap(({ id, name, position, status }) =>
    position === null ? [] : [{ id, name, position, isOnline: status === 'online' }]
  )
})
