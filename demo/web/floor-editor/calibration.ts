import { distance, type Point } from '../floor-plan/plan.js'

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
