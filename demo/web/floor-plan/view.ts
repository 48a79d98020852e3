import type { Point, Size } from './plan.js'

/** Which part of a plan is on the screen: screen = metres * scale + offset. */
export interface View {
  readonly scale: number
  readonly x: number
  readonly y: number
}

const MIN_SCALE = 2
const MAX_SCALE = 120

export const toScreen = ({ scale, x, y }: View, point: Point): Point => ({
  x: point.x * scale + x,
  y: point.y * scale + y
})

export const toPlan = ({ scale, x, y }: View, point: Point): Point => ({
  x: (point.x - x) / scale,
  y: (point.y - y) / scale
})

/** The whole plan in the middle of the screen. */
export const fitted = (plan: Size, screen: Size, padding: number): View => {
  const inner = { width: Math.max(screen.width - 2 * padding, 1), height: Math.max(screen.height - 2 * padding, 1) }
  const scale = Math.min(inner.width / plan.width, inner.height / plan.height)
  return { scale, x: (screen.width - plan.width * scale) / 2, y: (screen.height - plan.height * scale) / 2 }
}

/** What is under `anchor` stays under it. */
export const zoomed = (view: View, anchor: Point, factor: number): View => {
  const scale = Math.min(Math.max(view.scale * factor, MIN_SCALE), MAX_SCALE)
  const ratio = scale / view.scale
  return { scale, x: anchor.x - (anchor.x - view.x) * ratio, y: anchor.y - (anchor.y - view.y) * ratio }
}

export const moved = (view: View, by: Point): View => ({ ...view, x: view.x + by.x, y: view.y + by.y })

/** The same scale, with this place in the middle. */
export const centredOn = ({ scale }: View, place: Point, screen: Size): View => ({
  scale,
  x: screen.width / 2 - place.x * scale,
  y: screen.height / 2 - place.y * scale
})
