import { ref, watch } from 'vue'

const STORAGE_KEY = 'gatehouse-building'

/**
 * The building that the user has set for this browser; empty if it is not set. Only this choice makes the banner of an alarm in
 * another building smaller.
 */
export const ownBuildingId = ref(localStorage.getItem(STORAGE_KEY) ?? '')
watch(ownBuildingId, (id) => localStorage.setItem(STORAGE_KEY, id))
