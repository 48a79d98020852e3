import { isInside } from '../../../schemas/polygon.js'
import type { FloorContext, HeatMap } from '../types.js'
import { colourScale, HEAT_TOKENS } from './colour-scale.js'
import type { Layer } from './layer.js'
import { boxAround, cornersOf, type Point } from './plan.js'

/** Below this part of the longest stay, colours fade out. */
const FADE_PART = 0.12
const ALPHA = 0.75

/** The means of each cell and its neighbours, so that single steps do not look like places. */
export const smoothed = ({ columns, rows, seconds }: HeatMap): readonly number[] =>
  seconds.map((_, index) => {
    const [column, row] = [index % columns, Math.floor(index / columns)]
    let [sum, cells] = [0, 0]
    for (let y = Math.max(row - 1, 0); y <= Math.min(row + 1, rows - 1); y += 1) {
      for (let x = Math.max(column - 1, 0); x <= Math.min(column + 1, columns - 1); x += 1) {
        sum += seconds[y * columns + x] ?? 0
        cells += 1
      }
    }
    return sum / cells
  })

/** The parts of a floor plan that are its outline: the building and the zones, which may be outdoors. */
type Outline = Pick<FloorContext, 'walls' | 'zones'>

/** Whether a point is in the building or in a zone. A plan without walls has no outline. */
const outlineOf = ({ walls, zones }: Outline): ((point: Point) => boolean) => {
  if (walls.length === 0) return () => true
  const ends = walls.flatMap(([x1, y1, x2, y2]) => [
    { x: x1, y: y1 },
    { x: x2, y: y2 }
  ])
  const { x, y, width, height } = boxAround(ends)
  const areas = zones.map(({ polygon }) => cornersOf(polygon))
  return (point) =>
    (point.x >= x && point.x <= x + width && point.y >= y && point.y <= y + height) ||
    areas.some((corners) => isInside(corners, point))
}

/** The time that people spent at each place. */
export interface Heat {
  /** Person-seconds per square metre, row by row. */
  readonly seconds: readonly number[]
  readonly columns: number
  /** The length of a cell in metres. */
  readonly cell: number
  /** The largest value, at the end of the scale. */
  readonly max: number
}

/** Measured positions and the smoothing reach beyond the outer walls; the heat does not. */
export const heatOf = (map: HeatMap, outline: Outline): Heat => {
  const { cell, columns } = map
  const isOnFloor = outlineOf(outline)
  const seconds = smoothed(map).map((value, index) => {
    const centre = { x: ((index % columns) + 0.5) * cell, y: (Math.floor(index / columns) + 0.5) * cell }
    return value > 0 && isOnFloor(centre) ? value : 0
  })
  return { seconds, columns, cell, max: Math.max(1, ...seconds) }
}

/** The value at a place on the floor; null outside of the map. */
export const heatAt = ({ seconds, columns, cell }: Heat, { x, y }: Point): number | null => {
  const [column, row] = [Math.floor(x / cell), Math.floor(y / cell)]
  return column < 0 || column >= columns || row < 0 ? null : (seconds[row * columns + column] ?? null)
}

/** Colours the places in a continuous scale from zero to the largest value. */
export const heatMapLayer = ({ seconds, columns, cell, max }: Heat): Layer => ({
  surface: 'ground',
  draw: ({ pen, view, colour }) => {
    const colourAt = colourScale(HEAT_TOKENS.map(colour))
    const edge = (index: number, offset: number): number => Math.round(index * cell * view.scale + offset)
    for (const [index, value] of seconds.entries()) {
      if (value === 0) continue
      const [column, row] = [index % columns, Math.floor(index / columns)]
      const [x, y] = [edge(column, view.x), edge(row, view.y)]
      pen.fillStyle = colourAt(value / max)
      pen.globalAlpha = ALPHA * Math.min(value / max / FADE_PART, 1)
      // Whole pixels, so that there are no gaps between the cells.
      pen.fillRect(x, y, edge(column + 1, view.x) - x, edge(row + 1, view.y) - y)
    }
    pen.globalAlpha = 1
  }
})
