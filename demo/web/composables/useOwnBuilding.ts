import { computed, onScopeDispose, type Ref, ref, shallowRef, watch } from 'vue'

const STORAGE_KEY = 'gatehouse-building'

/** The building of this screen or its user, from the settings; empty if it is not set. */
export const ownBuildingId = ref(localStorage.getItem(STORAGE_KEY) ?? '')
watch(ownBuildingId, (id) => localStorage.setItem(STORAGE_KEY, id))

const shown = shallowRef<{ readonly id: string; readonly name: string } | null>(null)

/** Names the building that the page shows, while the component is mounted. */
export const useShownBuilding = (building: Ref<{ readonly id: string; readonly name: string } | undefined>): void => {
  watch(
    building,
    (one) => {
      shown.value = one ? { id: one.id, name: one.name } : null
    },
    { immediate: true }
  )
  onScopeDispose(() => {
    shown.value = null
  })
}

/** The building whose people look at this page: that of the screen, else the one that the page shows; null if unknown. */
export const viewersBuildingId = computed(() => ownBuildingId.value || (shown.value?.id ?? null))
export const shownBuildingName = computed(() => shown.value?.name ?? null)
