import { type Ref, shallowRef, watch } from 'vue'
import type { FloorContext } from '../types.js'

/** The uploaded picture of a floor; null without one, and while it loads. */
export const usePlanImage = (plan: Ref<FloorContext | null>) => {
  const image = shallowRef<HTMLImageElement | null>(null)
  const url = (): string | null => {
    const { imageUrl, imageAt } = plan.value?.floor ?? {}
    return imageUrl && imageAt ? `${imageUrl}?v=${Date.parse(imageAt)}` : null
  }
  watch(
    url,
    (address) => {
      image.value = null
      if (address === null) return
      const loading = new Image()
      loading.onload = () => {
        // Another floor may have been chosen in the meantime.
        if (address === url()) image.value = loading
      }
      loading.src = address
    },
    { immediate: true }
  )
  return image
}
