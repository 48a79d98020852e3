import { distance, type Point } from '../floor-plan/plan.js'

export interface Gestures {
  readonly moveBy: (x: number, y: number) => void
  readonly zoomBy: (factor: number, at: Point) => void
  readonly tap: (at: Point) => void
}

/** A finger that moves less than this has tapped. */
const TAP_PIXELS = 6

/** Listeners that make moves, pinches and taps out of what pointers do. */
export const usePlanGestures = ({ moveBy, zoomBy, tap }: Gestures) => {
  const pointers = new Map<number, Point>()
  let travelled = 0

  const placeOf = (event: MouseEvent): Point => ({ x: event.offsetX, y: event.offsetY })

  const pointerdown = (event: PointerEvent): void => {
    if (pointers.size === 0) travelled = 0
    pointers.set(event.pointerId, placeOf(event))
    const target = event.currentTarget as Element
    target.setPointerCapture(event.pointerId)
  }

  const pointermove = (event: PointerEvent): void => {
    const before = pointers.get(event.pointerId)
    if (before === undefined) return
    const now = placeOf(event)
    const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1]
    pointers.set(event.pointerId, now)
    travelled += distance(before, now)
    if (other !== undefined) zoomBy(distance(now, other) / Math.max(distance(before, other), 1), other)
    else if (travelled > TAP_PIXELS) moveBy(now.x - before.x, now.y - before.y)
  }

  const pointerup = (event: PointerEvent): void => {
    pointers.delete(event.pointerId)
    if (pointers.size === 0 && travelled <= TAP_PIXELS) tap(placeOf(event))
  }

  const pointercancel = (event: PointerEvent): void => void pointers.delete(event.pointerId)

  const wheel = (event: WheelEvent): void => {
    event.preventDefault()
    zoomBy(1.0015 ** -event.deltaY, placeOf(event))
  }

  return { pointerdown, pointermove, pointerup, pointercancel, wheel }
}
