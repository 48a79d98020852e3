// Rules for the area of a zone that a schema cannot express. Web applications and backends share them.

export interface Corner {
  readonly x: number
  readonly y: number
}

/** The size of a floor in metres. */
export interface FloorSize {
  readonly width: number
  readonly height: number
}

const MIN_CORNERS = 3
/** Rounding errors below a millimetre are ignored. */
const TOLERANCE = 1e-3

/** Converts corners of the form `[x, y]`. */
export const cornersOf = (polygon: readonly (Corner | readonly number[])[]): Corner[] =>
  polygon.map((corner) => ('x' in corner ? corner : { x: corner[0] ?? 0, y: corner[1] ?? 0 }))

/** Why corners are not the area of a zone, to be read after its name: "crosses itself". Null if they are. */
export const polygonError = (corners: readonly Corner[], floor: FloorSize | null): string | null => {
  if (corners.length < MIN_CORNERS) return `needs at least ${MIN_CORNERS} points`
  if (floor !== null && cornersOutside(corners, floor).length > 0) return 'must be inside the floor'
  if (crossesItself(corners)) return 'crosses itself'
  return null
}

/** The indexes of the corners that are not on the floor. */
export const cornersOutside = (corners: readonly Corner[], { width, height }: FloorSize): number[] =>
  corners.flatMap(({ x, y }, index) => {
    const isInside = x >= -TOLERANCE && y >= -TOLERANCE && x <= width + TOLERANCE && y <= height + TOLERANCE
    return isInside ? [] : [index]
  })

/** Whether two edges have a point in common, except for the corner of neighbours. Equal corners count too. */
const crossesItself = (corners: readonly Corner[]): boolean => {
  const edges = corners.map((from, index) => ({ from, to: corners[(index + 1) % corners.length] ?? from }))
  return edges.some((edge, index) =>
    edges.slice(index + 1).some((other, offset) => {
      const isNext = offset === 0
      const isPrevious = index === 0 && offset === edges.length - 2
      if (isNext) return foldsBack(edge.from, edge.to, other.to)
      if (isPrevious) return foldsBack(other.from, edge.from, edge.to)
      return doIntersect(edge.from, edge.to, other.from, other.to)
    })
  )
}

/** Twice the area of the triangle: positive if `third` is on the right of the line, on a plan whose y axis points down. */
const turnOf = (first: Corner, second: Corner, third: Corner): number =>
  (second.x - first.x) * (third.y - first.y) - (second.y - first.y) * (third.x - first.x)

const sideOf = (first: Corner, second: Corner, third: Corner): -1 | 0 | 1 => {
  const turn = turnOf(first, second, third)
  if (Math.abs(turn) <= TOLERANCE * TOLERANCE) return 0
  return turn > 0 ? 1 : -1
}

/** Whether the edge after `corner` lies on the edge before it, or one of them has no length. */
const foldsBack = (before: Corner, corner: Corner, after: Corner): boolean => {
  if (sideOf(before, corner, after) !== 0) return false
  const along = (before.x - corner.x) * (after.x - corner.x) + (before.y - corner.y) * (after.y - corner.y)
  return along >= -TOLERANCE * TOLERANCE
}

const doIntersect = (from: Corner, to: Corner, otherFrom: Corner, otherTo: Corner): boolean => {
  const sides = [sideOf(from, to, otherFrom), sideOf(from, to, otherTo)]
  const otherSides = [sideOf(otherFrom, otherTo, from), sideOf(otherFrom, otherTo, to)]
  if (sides[0] !== sides[1] && otherSides[0] !== otherSides[1]) return true
  return (
    (sides[0] === 0 && isBetween(from, to, otherFrom)) ||
    (sides[1] === 0 && isBetween(from, to, otherTo)) ||
    (otherSides[0] === 0 && isBetween(otherFrom, otherTo, from)) ||
    (otherSides[1] === 0 && isBetween(otherFrom, otherTo, to))
  )
}

/** For a point on the line through both ends. */
const isBetween = (from: Corner, to: Corner, { x, y }: Corner): boolean =>
  x >= Math.min(from.x, to.x) - TOLERANCE &&
  x <= Math.max(from.x, to.x) + TOLERANCE &&
  y >= Math.min(from.y, to.y) - TOLERANCE &&
  y <= Math.max(from.y, to.y) + TOLERANCE

/** Twice the signed area of each triangle of the origin and an edge; the sum is that of the polygon. */
const edgeAreas = (corners: readonly Corner[]) =>
  corners.map((from, index) => {
    const to = corners[(index + 1) % corners.length] ?? from
    return { from, to, area: from.x * to.y - to.x * from.y }
  })

/** In square metres. */
export const areaOf = (corners: readonly Corner[]): number =>
  Math.abs(edgeAreas(corners).reduce((sum, { area }) => sum + area, 0)) / 2

/** The centre of gravity of a valid polygon. */
export const centreOf = (corners: readonly Corner[]): Corner => {
  const areas = edgeAreas(corners)
  const whole = areas.reduce((sum, { area }) => sum + area, 0)
  const sumOf = (axis: 'x' | 'y'): number =>
    areas.reduce((sum, { from, to, area }) => sum + (from[axis] + to[axis]) * area, 0)
  return { x: sumOf('x') / (3 * whole), y: sumOf('y') / (3 * whole) }
}

/** Whether the point is inside; points on an edge may be on either side. Allocates nothing, because it is called often. */
export const isInside = (corners: readonly Corner[], { x, y }: Corner): boolean => {
  let isOdd = false
  let from = corners.at(-1)
  for (const to of corners) {
    if (from && from.y > y !== to.y > y && x < ((to.x - from.x) * (y - from.y)) / (to.y - from.y) + from.x)
      isOdd = !isOdd
    from = to
  }
  return isOdd
}
