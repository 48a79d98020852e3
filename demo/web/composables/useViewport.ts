import { computed, onScopeDispose, type Ref, ref, shallowRef, watch } from 'vue'
import type { Point, Size } from '../floor-plan/plan.js'
import { KEY_ACTIONS, Pointers, wheelFactor } from '../floor-plan/pointers.js'
import {
  type Bounds,
  centreOf,
  centreOn,
  fit,
  panBy,
  textOfView,
  toFloor,
  type View,
  viewOfText,
  zoomAbout,
  zoomLimits
} from '../floor-plan/viewport.js'

export const ZOOM_STEP = 1.5
/** The URL is updated when the view has not changed for so long. */
const SETTLED_MS = 300

interface Options {
  readonly floor: () => Size
  readonly panel: Ref<Size>
  /** The view of the URL; null while the whole floor is shown. */
  readonly text: Ref<string | null>
  /** Called when the user pans. */
  readonly onPan: () => void
  readonly onFollow: () => void
}

/** The visible part of the floor, and the input that changes it. */
export const useViewport = ({ floor, panel, text, onPan, onFollow }: Options) => {
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
  const readText = (): void => {
    chosen.value = text.value === null ? null : viewOfText(text.value, bounds.value)
  }
  watch(panel, (_now, before) => {
    if (before.width === 0) readText()
    // The place at the centre of the panel stays there.
    else if (chosen.value) show(centreOn(chosen.value.scale, toFloor(chosen.value, centreOf(before)), bounds.value))
  })
  let writtenText = text.value
  let timer: ReturnType<typeof setTimeout> | undefined
  watch(chosen, (shown) => {
    clearTimeout(timer)
    timer = setTimeout(() => {
      writtenText = shown && textOfView(shown, panel.value)
      text.value = writtenText
    }, SETTLED_MS)
  })
  onScopeDispose(() => clearTimeout(timer))
  watch(text, (given) => {
    if (given !== writtenText) readText()
    writtenText = given
  })

  const zoomBy = (factor: number, at: Point = centreOf(panel.value)): void =>
    show(zoomAbout(view.value, at, factor, bounds.value))
  const fitFloor = (): void => {
    chosen.value = null
  }

  const pointers = new Pointers()
  const isDragging = ref(false)
  const act = (key: string): boolean => {
    const action = KEY_ACTIONS[key]
    if (action === undefined) return false
    if (action === 'fit') fitFloor()
    else if (action === 'follow') onFollow()
    else if ('zoom' in action) zoomBy(ZOOM_STEP ** action.zoom)
    else {
      onPan()
      show(panBy(view.value, action.pan, bounds.value))
    }
    return true
  }
  const release = ({ pointerId }: PointerEvent): void => {
    pointers.up(pointerId)
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
    /** Whether the pointer that is being released has moved the plan. */
    hasDragged: (): boolean => pointers.isGesture,
    listeners: {
      pointerdown: (event: PointerEvent): void => {
        if (event.button === 0) pointers.down(event.pointerId, pixelOf(event))
      },
      pointermove: (event: PointerEvent): void => {
        const next = pointers.move(event.pointerId, pixelOf(event), view.value, bounds.value)
        if (next === view.value) return
        if (!isDragging.value && event.currentTarget instanceof Element)
          event.currentTarget.setPointerCapture(event.pointerId)
        isDragging.value = true
        onPan()
        show(next)
      },
      pointerup: release,
      pointercancel: release,
      wheel: (event: WheelEvent): void => {
        event.preventDefault()
        zoomBy(wheelFactor(event), pixelOf(event))
      },
      keydown: (event: KeyboardEvent): void => {
        // Combinations with modifiers belong to the browser.
        if (!event.ctrlKey && !event.metaKey && !event.altKey && act(event.key)) event.preventDefault()
      }
    }
  }
}

/** The position in the panel: the listeners are on the panel, which contains no other element that receives events. */
export const pixelOf = ({ clientX, clientY, currentTarget }: MouseEvent): Point => {
  if (!(currentTarget instanceof Element)) return { x: 0, y: 0 }
  const { left, top } = currentTarget.getBoundingClientRect()
  return { x: clientX - left - currentTarget.clientLeft, y: clientY - top - currentTarget.clientTop }
}
