import type { Refusal } from 'gatehouse-client'
import { type Freshness, isInView, Movement, type View } from 'gatehouse-client/buildings'
import { computed, onScopeDispose, type Ref, ref, shallowRef, watch } from 'vue'
import type { PositionEntry } from '../../../schemas/realtime.js'
import { useNow } from '../../../src/ui/useNow.js'
import { isPerson, kindOf, type Marker, type MarkerKind } from '../floor-plan/marker.js'
import type { Rect } from '../floor-plan/plan.js'
import { searchText } from '../search.js'
import { api, positions, realtime } from '../services.js'
import type { DataResponse, FloorContext } from '../types.js'
import { useLoad } from './useLoad.js'
import { usePositions } from './usePositions.js'

/** A transmitter reports at least once a minute. One that is silent for longer is dimmed although its floor is live. */
const SILENT_AFTER_MS = 90_000
/** All pages receive a change at the same time; their requests are spread over this time. */
const SPREAD_MS = 1000
const stillness = matchMedia('(prefers-reduced-motion: reduce)')

/** One floor: its plan and the moving markers on it. Subscribes to this floor's channel only, while it is shown. */
export const useFloor = (floorId: Ref<string | null>, selected: Ref<string | null>) => {
  const now = useNow()
  const movement = new Movement()
  const state = ref(realtime.state)
  const freshness = ref<Freshness>('unknown')
  /** Set while the client does not try to connect again. */
  const refusal = shallowRef<Refusal | null>(null)
  const batches = ref(0)
  /** The part of the floor that is received; null for all of it. No batch announces an empty part. */
  const received = computed((): View | null => {
    void batches.value
    void now.value
    return positions.view(floorId.value ?? '')
  })
  const shownPart = shallowRef<View | null>(null)

  const context = useLoad((options) => api.context.floor.read<DataResponse<FloorContext>>(floorId.value ?? '', options))
  const carriers = computed(() => new Map((context.data.value?.carriers ?? []).map((one) => [one.transmitterId, one])))
  /** Also of carriers on other floors. */
  const kindOfCarrier = (id: string): MarkerKind => {
    const { entityType, isFirstAider } = carriers.value.get(id) ?? {}
    return kindOf(entityType, isFirstAider)
  }
  const searchTextOf = (id: string): string | null => {
    const carrier = carriers.value.get(id)
    return carrier ? searchText(carrier) : null
  }
  let changeTimer: ReturnType<typeof setTimeout> | undefined
  /** After a change of names, zones, receivers or the floor by any user. Changes in quick succession cause one request. */
  const loadChanges = (): void => {
    changeTimer ??= setTimeout(() => {
      changeTimer = undefined
      if (floorId.value !== null) void context.load()
    }, Math.random() * SPREAD_MS)
  }

  const applyPositions = (entries: readonly PositionEntry[]): void => {
    const atMs = performance.now()
    for (const { transmitterId, position, floorId: entryFloor } of entries) {
      const id = String(transmitterId)
      // A transmitter that changes floors is published on its old floor once more, with the new one.
      if (String(entryFloor) === floorId.value) movement.moveTo(id, position, atMs)
      else movement.remove(id)
    }
    batches.value += 1
  }

  /** The positions at load time; batches then update them. */
  watch(context.data, (loaded, previous) => {
    if (loaded === null || loaded.floor.id !== floorId.value) return
    // A tag that was taken from its carrier may never report again.
    for (const { transmitterId } of previous?.carriers ?? [])
      if (!carriers.value.has(transmitterId)) movement.remove(transmitterId)
    const part = positions.view(loaded.floor.id)
    const inPart = loaded.positions.filter(({ position }) => part === null || isInView(position, part))
    applyPositions(positions.store.add(inPart.map((entry) => ({ ...entry, positionMethod: 'stored' }))))
  })

  /** The markers with their moving positions. Recomputed for each batch, not for each frame. People are drawn above assets. */
  const markers = computed((): readonly Marker[] => {
    void batches.value
    const list = positions.store.onFloor(floorId.value ?? '').flatMap(({ entry, atMs }): Marker[] => {
      const id = String(entry.transmitterId)
      const position = movement.positionOf(id)
      if (position === undefined) return []
      const carrier = carriers.value.get(id)
      const ageMs = Math.max(now.value - atMs, 0)
      const name = carrier?.name ?? id
      const zoneId = entry.zoneId == null ? null : String(entry.zoneId)
      const isStale = freshness.value === 'stale' || ageMs > SILENT_AFTER_MS
      return [{ id, name, kind: kindOfCarrier(id), position, zoneId, ageMs, isStale }]
    })
    return list.sort((one, other) => Number(isPerson(one.kind)) - Number(isPerson(other.kind)))
  })
  /** The time of the newest position; null before the first one. */
  const newestMs = computed(() => {
    void now.value
    void batches.value
    const ageMs = positions.ageMs(floorId.value ?? '')
    return ageMs === null ? null : Date.now() - ageMs
  })

  /** The selected marker is always received: the whole floor is, unless the part contains it. */
  const wantedPart = computed((): View | null => {
    void batches.value
    const part = shownPart.value
    if (part === null || selected.value === null) return part
    const entry = positions.store.get(selected.value)?.entry
    return entry !== undefined && String(entry.floorId) === floorId.value && isInView(entry.position, part)
      ? part
      : null
  })

  const show = (id: string | null): void => {
    movement.clear()
    positions.showFloor(id)
    freshness.value = positions.freshness(id ?? '')
    if (id !== null) void context.load()
  }
  watch(floorId, show, { immediate: true })
  watch([floorId, wantedPart], ([id, part]) => {
    if (id !== null) positions.setView(id, part)
    batches.value += 1
  })

  const listeners = [
    realtime.on('state', (changed) => {
      state.value = changed
      if (changed !== 'offline') refusal.value = null
    }),
    realtime.on('refused', (refused) => {
      if (refused.channel === null && !refused.retryable) refusal.value = refused
    }),
    positions.on('freshness', (change) => {
      if (change.floorId === floorId.value) freshness.value = change.state
    }),
    positions.on('removed', ({ entry }) => {
      movement.remove(String(entry.transmitterId))
      batches.value += 1
    }),
    positions.on('position-batch', (batch) => batch.floorId === floorId.value && applyPositions(batch.data)),
    positions.on('gap', () => floorId.value !== null && void context.load()),
    positions.on('publication', ({ data }) => data.type === 'site-changed' && loadChanges())
  ]
  usePositions()
  onScopeDispose(() => {
    for (const stopListening of listeners) stopListening()
    clearTimeout(changeTimer)
    positions.showFloor(null)
  })

  return {
    context,
    markers,
    carriers,
    kindOfCarrier,
    searchTextOf,
    now,
    state,
    freshness,
    refusal,
    newestMs,
    received,
    /** Receives only the positions in this part of the floor; null for all. */
    showPart: (part: Rect | null): void => {
      shownPart.value = part && { x: part.x, y: part.y, w: part.width, h: part.height }
    },
    /** Moves all markers to their positions at this time. Returns whether one has moved. */
    advance: (nowMs: number): boolean => {
      if (!movement.isMoving) return false
      movement.advance(stillness.matches ? Number.POSITIVE_INFINITY : nowMs)
      return true
    },
    reconnect: (): void => realtime.reconnect()
  }
}
