import { type Ref, shallowRef, watch } from 'vue'
import type { FloorContext } from '../types.js'

type Floor = FloorContext['floor']

/** Larger canvases need much memory, and some browsers reject them. */
const MAX_SIDE = 4096

/** The uploaded picture of a floor, cut to the floor; null without one, and while it loads. */
export const usePlanImage = (plan: Ref<FloorContext | null>) => {
  const picture = shallowRef<HTMLCanvasElement | null>(null)
  /** Changes with another image and with another calibration. */
  const version = (): string => JSON.stringify(plan.value?.floor.planImage ?? null)
  watch(
    version,
    (wanted) => {
      const { floor } = plan.value ?? {}
      picture.value = null
      if (!floor?.planImage) return
      const image = new Image()
      image.onload = () => {
        // Another floor may have been chosen in the meantime.
        if (wanted === version()) picture.value = cutToFloor(image, floor)
      }
      image.src = floor.planImage.url
    },
    { immediate: true }
  )
  return picture
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
