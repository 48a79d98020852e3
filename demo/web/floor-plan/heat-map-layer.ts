import { isInside } from '../../../schemas/polygon.js'
import type { FloorContext, HeatMap } from '../types.js'
import type { Layer } from './layer.js'
import { boxAround, cornersOf, type Point } from './plan.js'

const MIN_ALPHA = 0.06
const MAX_ALPHA = 0.65

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

/** The time that people spent in each cell. Measured positions and the smoothing reach beyond the outer walls; the colour does not. */
export const heatMapLayer = (map: HeatMap, outline: Outline): Layer => {
  const { cell, columns } = map
  const isOnFloor = outlineOf(outline)
  const heat = smoothed(map).map((seconds, index) => {
    const centre = { x: ((index % columns) + 0.5) * cell, y: (Math.floor(index / columns) + 0.5) * cell }
    return seconds > 0 && isOnFloor(centre) ? seconds : 0
  })
  const max = Math.max(1, ...heat)
  return {
    surface: 'ground',
    draw: ({ pen, view, colour }) => {
      pen.fillStyle = colour('--danger')
      const edge = (index: number, offset: number): number => Math.round(index * cell * view.scale + offset)
      for (const [index, seconds] of heat.entries()) {
        if (seconds === 0) continue
        const [column, row] = [index % columns, Math.floor(index / columns)]
        const [x, y] = [edge(column, view.x), edge(row, view.y)]
        pen.globalAlpha = MIN_ALPHA + (MAX_ALPHA - MIN_ALPHA) * (seconds / max)
        // Whole pixels, so that there are no gaps between the cells.
        pen.fillRect(x, y, edge(column + 1, view.x) - x, edge(row + 1, view.y) - y)
      }
      pen.globalAlpha = 1
    }
  }
}
