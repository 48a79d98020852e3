import type { Corner, FloorSize } from '../../../schemas/polygon.js'

// Changes of a zone's corners. Coordinates are in metres; the results stay on the floor. No browser APIs.

/** Corners are placed on a grid, in metres. */
export const GRID = 0.1

const onGrid = (metres: number): number => Math.round(metres / GRID) / Math.round(1 / GRID)

/** The nearest point of the grid that is on the floor. */
export const onFloor = ({ x, y }: Corner, { width, height }: FloorSize): Corner => ({
  x: onGrid(Math.min(Math.max(x, 0), width)),
  y: onGrid(Math.min(Math.max(y, 0), height))
})

export const withCorner = (corners: readonly Corner[], index: number, corner: Corner): Corner[] =>
  corners.map((old, at) => (at === index ? corner : old))

export const withoutCorner = (corners: readonly Corner[], index: number): Corner[] =>
  corners.filter((_, at) => at !== index)

/** The middle of the edge after a corner. */
export const edgeMiddle = (corners: readonly Corner[], index: number): Corner => {
  const from = corners[index] ?? { x: 0, y: 0 }
  const to = corners[(index + 1) % corners.length] ?? from
  return { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 }
}

/** Adds a corner in the middle of the edge after another one. Without any, in the middle of the floor. */
export const withInserted = (corners: readonly Corner[], index: number, floor: FloorSize): Corner[] => {
  if (corners.length === 0) return [onFloor({ x: floor.width / 2, y: floor.height / 2 }, floor)]
  return corners.toSpliced(index + 1, 0, onFloor(besideEdge(corners, index, floor), floor))
}

/** With less than two edges there is no middle; the new corner is a few metres away instead. */
const besideEdge = (corners: readonly Corner[], index: number, { width, height }: FloorSize): Corner => {
  if (corners.length > 2) return edgeMiddle(corners, index)
  const { x, y } = corners[index] ?? { x: 0, y: 0 }
  const away = Math.min(width, height) / 5
  if (corners.length === 1) return { x: x + away > width ? x - away : x + away, y }
  return { x, y: y + away > height ? y - away : y + away }
}

/** Moves all corners by the same distance, in steps of the grid and as far as the floor allows. */
export const moved = (corners: readonly Corner[], by: Corner, { width, height }: FloorSize): Corner[] => {
  const within = (distance: number, values: readonly number[], limit: number): number =>
    Math.min(Math.max(onGrid(distance), -Math.min(...values)), limit - Math.max(...values))
  const x = within(
    by.x,
    corners.map((corner) => corner.x),
    width
  )
  const y = within(
    by.y,
    corners.map((corner) => corner.y),
    height
  )
  return corners.map((corner) => ({ x: toMillimetres(corner.x + x), y: toMillimetres(corner.y + y) }))
}

/** Removes rounding errors. */
const toMillimetres = (metres: number): number => Math.round(metres * 1000) / 1000
