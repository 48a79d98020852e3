import type { HeatMap } from '../types.js'
import type { Layer } from './layer.js'

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

/** The time that people spent in each cell. */
export const heatMapLayer = (map: HeatMap): Layer => {
  const heat = smoothed(map)
  const max = Math.max(1, ...heat)
  const { cell, columns } = map
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
