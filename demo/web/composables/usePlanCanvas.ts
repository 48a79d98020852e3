import { computed, onBeforeUnmount, onMounted, type Ref, ref, type ShallowRef, shallowRef } from 'vue'

interface Canvases {
  /** The element whose size the canvases have. */
  readonly box: Readonly<ShallowRef<HTMLElement | null>>
  readonly ground: Readonly<ShallowRef<HTMLCanvasElement | null>>
  readonly markers: Readonly<ShallowRef<HTMLCanvasElement | null>>
  /** Moves the markers. Returns whether one has moved. */
  readonly advance: (nowMs: number) => boolean
  readonly drawGround: (pen: CanvasRenderingContext2D) => void
  readonly drawMarkers: (pen: CanvasRenderingContext2D) => void
}

/** The two canvases of a plan: in each frame, those that are outdated are drawn. */
export const usePlanCanvas = ({ box, ground, markers, advance, drawGround, drawMarkers }: Canvases) => {
  const panel = shallowRef({ width: 0, height: 0 })
  const ratio = ref(1)
  let frame = 0
  let isGroundOutdated = true
  let areMarkersOutdated = true

  /** Empties a canvas; null if it is not there yet. */
  const clear = (element: HTMLCanvasElement | null): CanvasRenderingContext2D | null => {
    const pen = element?.getContext('2d') ?? null
    pen?.setTransform(ratio.value, 0, 0, ratio.value, 0, 0)
    pen?.clearRect(0, 0, panel.value.width, panel.value.height)
    return pen
  }
  const drawFrame = (nowMs: number): void => {
    frame = requestAnimationFrame(drawFrame)
    const hasMoved = advance(nowMs)
    if (isGroundOutdated) {
      isGroundOutdated = false
      const pen = clear(ground.value)
      if (pen) drawGround(pen)
    }
    if (!hasMoved && !areMarkersOutdated) return
    areMarkersOutdated = false
    const pen = clear(markers.value)
    if (pen) drawMarkers(pen)
  }

  const observer = new ResizeObserver(([entry]) => {
    const { width = 0, height = 0 } = entry?.contentRect ?? {}
    panel.value = { width, height }
    ratio.value = window.devicePixelRatio
  })
  onMounted(() => {
    if (box.value) observer.observe(box.value)
    frame = requestAnimationFrame(drawFrame)
  })
  onBeforeUnmount(() => {
    observer.disconnect()
    cancelAnimationFrame(frame)
  })
  return {
    panel,
    ratio: ratio as Readonly<Ref<number>>,
    pixels: computed(() => ({
      width: Math.round(panel.value.width * ratio.value),
      height: Math.round(panel.value.height * ratio.value)
    })),
    redrawMarkers: (): void => {
      areMarkersOutdated = true
    },
    redraw: (): void => {
      isGroundOutdated = true
      areMarkersOutdated = true
    }
  }
}
