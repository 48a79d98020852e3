import { computed, shallowRef, watch } from 'vue'
import { isDark, isLight } from '../floor-plan/plan-tone.js'
import { usePalette } from './usePalette.js'

/** Enough to tell paper from ink. */
const SAMPLE = 64

/** Whether a picture is light. */
export const isLightPicture = (picture: CanvasImageSource): boolean => {
  const pen = Object.assign(document.createElement('canvas'), { width: SAMPLE, height: SAMPLE }).getContext('2d')
  pen?.drawImage(picture, 0, 0, SAMPLE, SAMPLE)
  return !pen || isLight(pen.getImageData(0, 0, SAMPLE, SAMPLE).data)
}

/** Whether the current theme is dark. */
export const useIsDark = () => {
  const palette = usePalette()
  return computed(() => isDark(palette.value('--surface')))
}

/** Whether an uploaded plan must be inverted for the current theme: labels and markers are drawn for its background. */
export const usePlanTone = (url: () => string | null) => {
  const isDarkTheme = useIsDark()
  /** Null until the picture has loaded. */
  const isLightPlan = shallowRef<boolean | null>(null)
  watch(
    url,
    (wanted) => {
      isLightPlan.value = null
      if (wanted === null) return
      const image = new Image()
      image.onload = () => {
        // Another picture may be shown in the meantime.
        if (wanted === url()) isLightPlan.value = isLightPicture(image)
      }
      image.src = wanted
    },
    { immediate: true }
  )
  return { isInverted: computed(() => isLightPlan.value !== null && isLightPlan.value === isDarkTheme.value) }
}
