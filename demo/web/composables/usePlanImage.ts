import { computed, type Ref, shallowRef, watch } from 'vue'
import { invertLightness } from '../floor-plan/plan-tone.js'
import type { FloorContext } from '../types.js'
import { isLightPicture, useIsDark } from './usePlanTone.js'

type Floor = FloorContext['floor']

/** Larger canvases need much memory, and some browsers reject them. */
const MAX_SIDE = 4096

/**
 * The uploaded picture of a floor, cut to the floor; null without one, and while it loads. A light picture is inverted in the
 * dark theme, and a dark one in the light theme: labels and markers are drawn for the background of the theme.
 */
export const usePlanImage = (plan: Ref<FloorContext | null>) => {
  const isDarkTheme = useIsDark()
  const uploaded = shallowRef<HTMLCanvasElement | null>(null)
  /** Changes with another image and with another calibration. */
  const version = (): string => JSON.stringify(plan.value?.floor.planImage ?? null)
  watch(
    version,
    (wanted) => {
      const { floor } = plan.value ?? {}
      uploaded.value = null
      if (!floor?.planImage) return
      const image = new Image()
      image.onload = () => {
        // Another floor may have been chosen in the meantime.
        if (wanted === version()) uploaded.value = cutToFloor(image, floor)
      }
      image.src = floor.planImage.url
    },
    { immediate: true }
  )
  return computed(() => {
    const picture = uploaded.value
    return picture && isLightPicture(picture) === isDarkTheme.value ? inverted(picture) : picture
  })
}

const inverted = (picture: HTMLCanvasElement): HTMLCanvasElement => {
  const canvas = Object.assign(document.createElement('canvas'), { width: picture.width, height: picture.height })
  const pen = canvas.getContext('2d')
  const pixels = picture.getContext('2d')?.getImageData(0, 0, picture.width, picture.height)
  if (!pen || !pixels) return picture
  invertLightness(pixels.data)
  pen.putImageData(pixels, 0, 0)
  return canvas
}

/** The part of a calibrated image that is on the floor. */
const cutToFloor = (image: HTMLImageElement, { planImage, width, height }: Floor): HTMLCanvasElement => {
  const canvas = document.createElement('canvas')
  const pen = canvas.getContext('2d')
  if (!planImage || !pen) return canvas
  const scale = Math.min(image.naturalWidth / planImage.width, MAX_SIDE / Math.max(width, height))
  canvas.width = Math.ceil(width * scale)
  canvas.height = Math.ceil(height * scale)
  pen.scale(scale, scale)
  pen.rotate((planImage.rotation * Math.PI) / 180)
  pen.drawImage(image, planImage.x, planImage.y, planImage.width, planImage.height)
  return canvas
}
