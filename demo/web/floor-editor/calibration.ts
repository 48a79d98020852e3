import { boxAround, distance, type Point, type Rect, type Size } from '../floor-plan/plan.js'

// The place of a plan image on its floor. No browser APIs.

/** Two points of the image, in pixels, whose distance is known, and the corner of the floor with the coordinates 0, 0. */
export interface Marks {
  readonly first: Point
  readonly second: Point
  readonly origin: Point
}

/** The stored calibration of a floor. */
export interface Placed {
  readonly pixelsPerMetre?: number | null
  readonly rotation?: number | null
  readonly origin?: Point | null
}

/** In pixels per metre; null if the marks or the distance do not define one. */
export const scaleOf = ({ first, second }: Marks, metres: number): number | null => {
  const scale = distance(first, second) / metres
  return Number.isFinite(scale) && scale > 0 ? scale : null
}

/** The marks as reference points of the API: each in pixels and in metres. */
export const referencePoints = ({ first, second, origin }: Marks, scale: number) =>
  [first, second].map((pixel) => ({
    pixel,
    metre: { x: (pixel.x - origin.x) / scale, y: (pixel.y - origin.y) / scale }
  }))

/** The SVG transform from metres of the floor to pixels of its image. */
export const toImage = ({ pixelsPerMetre, rotation, origin }: Placed): string =>
  `translate(${origin?.x ?? 0} ${origin?.y ?? 0}) rotate(${rotation ?? 0}) scale(${pixelsPerMetre || 1})`

/** A wrong distance makes the floor much larger than the image, which must stay visible. */
const MAX_BEYOND = 2

/** The part of the drawing that has the image and the whole floor, in pixels of the image. */
export const frameOf = (image: Size, floor: Size, { pixelsPerMetre, rotation, origin }: Placed): Rect => {
  const scale = pixelsPerMetre || 1
  const angle = ((rotation ?? 0) * Math.PI) / 180
  const corners = [0, floor.width].flatMap((x) =>
    [0, floor.height].map((y) => ({
      x: (origin?.x ?? 0) + scale * (x * Math.cos(angle) - y * Math.sin(angle)),
      y: (origin?.y ?? 0) + scale * (x * Math.sin(angle) + y * Math.cos(angle))
    }))
  )
  const beyond = MAX_BEYOND * Math.max(image.width, image.height)
  const near = corners.map(({ x, y }) => ({
    x: Math.min(Math.max(x, -beyond), image.width + beyond),
    y: Math.min(Math.max(y, -beyond), image.height + beyond)
  }))
  return boxAround([{ x: 0, y: 0 }, { x: image.width, y: image.height }, ...near])
}
