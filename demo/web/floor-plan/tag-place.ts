import { overlaps } from './name-places.js'
import type { Point, Rect, Size } from './plan.js'
import { textWidth } from './text-width.js'

/** Where the tag of the selected marker is: to its right or left, above or below it. */
export interface TagCorner {
  readonly left: boolean
  readonly below: boolean
}

const HEIGHT = 24
const MAX_WIDTH = 320
/** Pixels between the centre of the marker and the tag. */
const GAP = 14

/** The rectangle that the tag covers, about. */
export const tagRect = ({ x, y }: Point, name: string, { left, below }: TagCorner): Rect => {
  const width = Math.min(textWidth(name) * 1.15 + 16, MAX_WIDTH)
  return { x: left ? x + GAP - width : x - GAP, y: below ? y + GAP : y - GAP - HEIGHT, width, height: HEIGHT }
}

/** A corner at which the tag covers no label and is in the panel. The first choice is towards the middle of the panel. */
export const cornerOfTag = (pixel: Point, name: string, panel: Size, labels: readonly Rect[]): TagCorner => {
  const [left, below] = [pixel.x * 2 > panel.width, pixel.y * 2 < panel.height]
  const first = { left, below }
  const corners = [first, { left, below: !below }, { left: !left, below }, { left: !left, below: !below }]
  const isFree = (corner: TagCorner): boolean => {
    const rect = tagRect(pixel, name, corner)
    const isInside = rect.x >= 0 && rect.y >= 0 && rect.x + rect.width <= panel.width && rect.y + HEIGHT <= panel.height
    return isInside && labels.every((label) => !overlaps(rect, label))
  }
  return corners.find(isFree) ?? first
}
