import { distance, middle, type Point, type Rect, type Size } from './plan.js'

/** Maps the floor to the panel: a pixel of the panel is metre × scale + (x, y). */
export interface View {
  /** Pixels per metre. */
  readonly scale: number
  readonly x: number
  readonly y: number
}

/** The sizes that limit a view: of the floor in metres, and of the panel in pixels. */
export interface Bounds {
  readonly floor: Size
  readonly panel: Size
}

export type Pair = readonly [Point, Point]

/** Pixels between the floor and the edge of the panel. */
const MARGIN = 16
const MAX_SCALE = 120

export const toPanel = ({ scale, x, y }: View, point: Point): Point => ({
  x: point.x * scale + x,
  y: point.y * scale + y
})

export const toFloor = ({ scale, x, y }: View, pixel: Point): Point => ({
  x: (pixel.x - x) / scale,
  y: (pixel.y - y) / scale
})

/** The height of a floor by its width, for the panel that it fills. Extreme floors, and those without a size, get a usable panel. */
export const proportionOf = ({ width, height }: Size): number =>
  width > 0 && height > 0 ? Math.min(Math.max(height / width, 0.2), 2) : 0.5

/** The centre of the panel, in pixels. */
export const centreOf = ({ width, height }: Size): Point => ({ x: width / 2, y: height / 2 })

/** The view that shows the whole floor. */
export const fit = ({ floor, panel }: Bounds): View => {
  const scaleOf = (pixels: number, metres: number): number => Math.max(pixels - 2 * MARGIN, 1) / Math.max(metres, 1)
  const scale = Math.min(scaleOf(panel.width, floor.width), scaleOf(panel.height, floor.height))
  return { scale, x: (panel.width - floor.width * scale) / 2, y: (panel.height - floor.height * scale) / 2 }
}

/** Scales a view around a pixel of the panel, which keeps its place on the floor. */
export const zoomAbout = (view: View, pixel: Point, factor: number, bounds: Bounds): View => {
  const scale = scaleInBounds(view.scale * factor, bounds)
  const place = toFloor(view, pixel)
  return inBounds({ scale, x: pixel.x - place.x * scale, y: pixel.y - place.y * scale }, bounds)
}

export const panBy = (view: View, { x, y }: Point, bounds: Bounds): View =>
  inBounds({ scale: view.scale, x: view.x + x, y: view.y + y }, bounds)

/** Moves and scales a view as two fingers move on the panel. */
export const pinch = (view: View, from: Pair, to: Pair, bounds: Bounds): View => {
  const [start, end] = [middle(...from), middle(...to)]
  const moved = { scale: view.scale, x: view.x + end.x - start.x, y: view.y + end.y - start.y }
  return zoomAbout(moved, end, distance(...to) / Math.max(distance(...from), 1), bounds)
}

/** Below this part of the floor, only the positions in the visible part are received. */
const SMALL_PART = 0.25

/** The visible part of the floor, in metres; null if it is a large part. */
export const smallPart = (view: View, { floor, panel }: Bounds): Rect | null => {
  if (panel.width === 0) return null
  const { x, y } = toFloor(view, { x: 0, y: 0 })
  const [width, height] = [panel.width / view.scale, panel.height / view.scale]
  return width * height < SMALL_PART * floor.width * floor.height ? { x, y, width, height } : null
}

/** Moves a view so that a place on the floor is at the centre of the panel. */
export const centreOn = (scale: number, place: Point, bounds: Bounds): View => {
  const centre = centreOf(bounds.panel)
  const allowed = scaleInBounds(scale, bounds)
  return inBounds({ scale: allowed, x: centre.x - place.x * allowed, y: centre.y - place.y * allowed }, bounds)
}

/** The closest view that keeps to the zoom limits and leaves no empty space at an edge of the panel. */
export const inBounds = (view: View, bounds: Bounds): View => {
  const { floor, panel } = bounds
  const scale = scaleInBounds(view.scale, bounds)
  return {
    scale,
    x: offsetInBounds(view.x, floor.width * scale, panel.width),
    y: offsetInBounds(view.y, floor.height * scale, panel.height)
  }
}

export const zoomLimits = (bounds: Bounds): { readonly min: number; readonly max: number } => {
  const min = fit(bounds).scale
  return { min, max: Math.max(min, MAX_SCALE) }
}

const scaleInBounds = (scale: number, bounds: Bounds): number => {
  const { min, max } = zoomLimits(bounds)
  return Math.min(Math.max(scale, min), max)
}

/** Along one axis: centres a floor that is shorter than the panel. */
const offsetInBounds = (offset: number, floorLength: number, panelLength: number): number => {
  const least = panelLength - MARGIN - floorLength
  return least > MARGIN ? (panelLength - floorLength) / 2 : Math.min(Math.max(offset, least), MARGIN)
}
