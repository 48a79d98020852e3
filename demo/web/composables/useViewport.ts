import { computed, type Ref, ref, shallowRef, watch } from 'vue'
import { distance, type Point, type Size } from '../floor-plan/plan.js'
import {
  type Bounds,
  centreOf,
  centreOn,
  fit,
  panBy,
  pinch,
  toFloor,
  type View,
  zoomAbout,
  zoomLimits
} from '../floor-plan/viewport.js'

export const ZOOM_STEP = 1.5
/** The distance of an arrow key, in pixels. */
const PAN = 80
/** A pointer that moves less is a click, in pixels. */
const CLICK_REACH = 4
/** A wheel reports pixels, lines or pages. */
const PIXELS_OF_UNIT = [1, 25, 500]
const MAX_WHEEL_PIXELS = 300

interface Options {
  readonly floor: () => Size
  readonly panel: Ref<Size>
  /** Called when the user pans. */
  readonly onPan: () => void
  readonly onFollow: () => void
}

/** The visible part of the floor, and the input that changes it. */
export const useViewport = ({ floor, panel, onPan, onFollow }: Options) => {
  const bounds = computed((): Bounds => ({ floor: floor(), panel: panel.value }))
  /** Null while the whole floor is shown, also after the panel has been resized. */
  const chosen = shallowRef<View | null>(null)
  const view = computed((): View => chosen.value ?? fit(bounds.value))
  const limits = computed(() => zoomLimits(bounds.value))

  /** An equal view is not a change: a marker that is followed to the edge of the floor would cause one in each frame. */
  const show = (next: View): void => {
    const { scale, x, y } = view.value
    if (next.scale !== scale || next.x !== x || next.y !== y)
      chosen.value = next.scale <= limits.value.min ? null : next
  }
  // The place at the centre of the panel stays there.
  watch(panel, (_now, before) => {
    if (chosen.value) show(centreOn(chosen.value.scale, toFloor(chosen.value, centreOf(before)), bounds.value))
  })
  const zoomBy = (factor: number, at: Point = centreOf(panel.value)): void =>
    show(zoomAbout(view.value, at, factor, bounds.value))
  const fitFloor = (): void => {
    chosen.value = null
  }
  const pan = (x: number, y: number): void => {
    onPan()
    show(panBy(view.value, { x, y }, bounds.value))
  }
  const actions: Readonly<Record<string, () => void>> = {
    ArrowLeft: () => pan(PAN, 0),
    ArrowRight: () => pan(-PAN, 0),
    ArrowUp: () => pan(0, PAN),
    ArrowDown: () => pan(0, -PAN),
    '+': () => zoomBy(ZOOM_STEP),
    '=': () => zoomBy(ZOOM_STEP),
    '-': () => zoomBy(1 / ZOOM_STEP),
    '0': fitFloor,
    f: onFollow
  }

  /** The mouse button or the fingers on the plan: one pans, two zoom and pan. */
  const pointers = new Map<number, Point>()
  let start: Point = { x: 0, y: 0 }
  /** Whether the plan was moved since the first pointer went down, so that the release is not a click. */
  let hasDragged = false
  const isDragging = ref(false)
  const release = ({ pointerId }: PointerEvent): void => {
    pointers.delete(pointerId)
    isDragging.value = false
  }

  return {
    view,
    canZoomIn: computed(() => view.value.scale < limits.value.max),
    isFitted: computed(() => view.value.scale <= limits.value.min),
    isDragging,
    zoomBy,
    fitFloor,
    centreOn: (place: Point, scale = view.value.scale): void => show(centreOn(scale, place, bounds.value)),
    hasDragged: (): boolean => hasDragged,
    listeners: {
      pointerdown: (event: PointerEvent): void => {
        if (event.button !== 0) return
        if (pointers.size === 0) start = pixelOf(event)
        hasDragged = pointers.size > 0
        pointers.set(event.pointerId, pixelOf(event))
      },
      pointermove: (event: PointerEvent): void => {
        const { pointerId, currentTarget } = event
        const from = pointers.get(pointerId)
        const at = pixelOf(event)
        if (from) hasDragged ||= distance(start, at) > CLICK_REACH
        if (!from || !hasDragged) return
        if (!isDragging.value && currentTarget instanceof Element) currentTarget.setPointerCapture(pointerId)
        isDragging.value = true
        pointers.set(pointerId, at)
        const other = [...pointers].find(([id]) => id !== pointerId)?.[1]
        onPan()
        show(
          other
            ? pinch(view.value, [from, other], [at, other], bounds.value)
            : panBy(view.value, { x: at.x - from.x, y: at.y - from.y }, bounds.value)
        )
      },
      pointerup: release,
      pointercancel: release,
      wheel: (event: WheelEvent): void => {
        event.preventDefault()
        const pixels = event.deltaY * (PIXELS_OF_UNIT[event.deltaMode] ?? 1)
        const limited = Math.min(Math.max(pixels, -MAX_WHEEL_PIXELS), MAX_WHEEL_PIXELS)
        // Trackpads report a pinch as a wheel with the control key, in small steps.
        zoomBy(2 ** (-limited / (event.ctrlKey ? 50 : 300)), pixelOf(event))
      },
      keydown: (event: KeyboardEvent): void => {
        const action = actions[event.key]
        // Combinations with modifiers belong to the browser.
        if (!action || event.ctrlKey || event.metaKey || event.altKey) return
        event.preventDefault()
        action()
      }
    }
  }
}

/** The position in the panel: the listeners are on the panel, which contains no other element that receives events. */
export const pixelOf = ({ clientX, clientY, currentTarget }: MouseEvent): Point => {
  if (!(currentTarget instanceof Element)) return { x: 0, y: 0 }
  const { left, top } = currentTarget.getBoundingClientRect()
  return { x: clientX - left, y: clientY - top }
}
