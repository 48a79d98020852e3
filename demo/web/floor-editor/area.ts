import type { Corner, FloorSize } from '../../../schemas/polygon.js'

// Changes of a zone's corners. Coordinates are in metres; new corners are on the floor. No browser APIs.

/** Corners are placed on a grid, in metres. */
export const GRID = 0.1

const onGrid = (metres: number): number => Math.round(metres / GRID) / Math.round(1 / GRID)

/** The nearest point of the grid that is on the floor. */
export const onFloor = ({ x, y }: Corner, { width, height }: FloorSize): Corner => ({
  x: onGrid(Math.min(Math.max(x, 0), width)),
  y: onGrid(Math.min(Math.max(y, 0), height))
})

/** The distance of a point from the edge after a corner. */
const distanceFromEdge = (corners: readonly Corner[], index: number, { x, y }: Corner): number => {
  const from = corners[index] ?? { x, y }
  const to = corners[(index + 1) % corners.length] ?? from
  const [dx, dy] = [to.x - from.x, to.y - from.y]
  const along = ((x - from.x) * dx + (y - from.y) * dy) / (dx * dx + dy * dy || 1)
  const part = Math.min(Math.max(along, 0), 1)
  return Math.hypot(from.x + part * dx - x, from.y + part * dy - y)
}

/** Adds a corner: the first ones in the order of the clicks, further ones in the nearest edge. */
export const withCorner = (corners: readonly Corner[], corner: Corner, floor: FloorSize): Corner[] => {
  const distances = corners.map((_, index) => distanceFromEdge(corners, index, corner))
  const index = corners.length < 3 ? corners.length - 1 : distances.indexOf(Math.min(...distances))
  return corners.toSpliced(index + 1, 0, onFloor(corner, floor))
}

/** Adds a corner in the middle of the edge after another one; while there is no area, a few metres away. */
export const withInserted = (corners: readonly Corner[], index: number, floor: FloorSize): Corner[] => {
  const from = corners[index] ?? { x: floor.width / 2, y: floor.height / 2 }
  const to = corners[(index + 1) % corners.length] ?? from
  const away = Math.min(floor.width, floor.height) / 5
  const middle = { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 }
  const beside = corners.length === 1 ? { x: from.x + (from.x + away > floor.width ? -away : away), y: from.y } : middle
  const below = { x: from.x, y: from.y + (from.y + away > floor.height ? -away : away) }
  return corners.toSpliced(index + 1, 0, onFloor(corners.length === 2 ? below : beside, floor))
}
