import { shallowRef, watch } from 'vue'
import { layerChoiceOf } from '../floor-plan/layer.js'

const STORAGE_KEY = 'gatehouse-layers'

/** The layers that the user has switched on, in all plans of this browser. */
export const useLayerChoice = () => {
  const choice = shallowRef(layerChoiceOf(localStorage.getItem(STORAGE_KEY)))
  watch(choice, (chosen) => localStorage.setItem(STORAGE_KEY, JSON.stringify(chosen)))
  return { choice }
}
