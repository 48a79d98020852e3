import type { Corner, FloorSize } from '../../../schemas/polygon.js'

// Changes of a zone's corners, in metres. No browser APIs.

/** Corners are placed on a grid, in metres. */
export const GRID = 0.1

const onGrid = (metres: number): number => Math.round(metres / GRID) / Math.round(1 / GRID)

/** The nearest point of the grid that is on the floor. */
export const onFloor = ({ x, y }: Corner, { width, height }: FloorSize): Corner => ({
  x: onGrid(Math.min(Math.max(x, 0), width)),
  y: onGrid(Math.min(Math.max(y, 0), height))
})

/** Where a corner is added after another one: in the middle of the edge; while there is no area, a few metres away. */
export const cornerAfter = (corners: readonly Corner[], index: number, { width, height }: FloorSize): Corner => {
  const from = corners[index] ?? { x: width / 2, y: height / 2 }
  const to = corners[(index + 1) % corners.length] ?? from
  const away = Math.min(width, height) / 5
  if (corners.length === 1) return { x: from.x + (from.x + away > width ? -away : away), y: from.y }
  if (corners.length === 2) return { x: from.x, y: from.y + (from.y + away > height ? -away : away) }
  return { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 }
}
