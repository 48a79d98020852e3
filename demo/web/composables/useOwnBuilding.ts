import { ref, watch } from 'vue'

const STORAGE_KEY = 'gatehouse-building'

/** The building of this screen or its user, from the settings; empty if it is not set. */
export const ownBuildingId = ref(localStorage.getItem(STORAGE_KEY) ?? '')
watch(ownBuildingId, (id) => localStorage.setItem(STORAGE_KEY, id))
