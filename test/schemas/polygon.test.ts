import t from 'tap'
import { areaOf, type Corner, centreOf, cornersOf, isInside, polygonError } from '../../schemas/polygon.js'

const FLOOR = { width: 20, height: 10 }

const corners = (...pairs: readonly (readonly [number, number])[]): Corner[] => pairs.map(([x, y]) => ({ x, y }))

const SQUARE = corners([1, 1], [5, 1], [5, 5], [1, 5])
const L_SHAPE = corners([0, 0], [6, 0], [6, 3], [3, 3], [3, 6], [0, 6])

t.test('the area of a zone', async (t) => {
  const cases: readonly (readonly [string, readonly Corner[], string | null])[] = [
    ['a square', SQUARE, null],
    ['a square in the other direction', SQUARE.toReversed(), null],
    ['a concave shape', L_SHAPE, null],
    ['the whole floor', corners([0, 0], [20, 0], [20, 10], [0, 10]), null],
    ['a corner in the middle of an edge', corners([1, 1], [3, 1], [5, 1], [5, 5], [1, 5]), null],
    ['no corners', [], 'needs at least 3 points'],
    ['two corners', corners([1, 1], [2, 2]), 'needs at least 3 points'],
    ['a corner outside of the floor', corners([1, 1], [21, 1], [5, 5]), 'must be inside the floor'],
    ['a corner with a negative coordinate', corners([1, 1], [5, -0.5], [5, 5]), 'must be inside the floor'],
    ['a bow tie', corners([1, 1], [5, 5], [5, 1], [1, 5]), 'crosses itself'],
    ['three corners in a line', corners([1, 1], [3, 1], [5, 1]), 'crosses itself'],
    ['two equal neighbours', corners([1, 1], [1, 1], [5, 1], [5, 5]), 'crosses itself'],
    ['an edge that returns on itself', corners([1, 1], [5, 1], [3, 1], [3, 5]), 'crosses itself'],
    ['a corner that touches another edge', corners([1, 1], [5, 1], [5, 5], [3, 1], [1, 5]), 'crosses itself'],
    ['the same corner twice', corners([1, 1], [5, 1], [3, 3], [5, 5], [1, 5], [3, 3]), 'crosses itself']
  ]
  for (const [title, polygon, error] of cases) {
    t.test(`the validation of ${title} reports ${error ?? 'no error'}`, async (t) => {
      t.equal(polygonError(polygon, FLOOR), error)
    })
  }

  t.test('a floor without a size limits no area', async (t) => {
    t.equal(polygonError(corners([1, 1], [210, 1], [5, 5]), null), null)
  })

  t.test('corners may be pairs of numbers', async (t) => {
    t.same(cornersOf([[1, 2], { x: 3, y: 4 }]), corners([1, 2], [3, 4]))
  })

  t.test('area and centre do not depend on the direction', async (t) => {
    t.equal(areaOf(SQUARE), 16)
    t.equal(areaOf(L_SHAPE), 27)
    t.equal(areaOf(L_SHAPE.toReversed()), 27)
    t.same(centreOf(SQUARE), { x: 3, y: 3 })
    t.same(centreOf(SQUARE.toReversed()), { x: 3, y: 3 })
  })

  t.test('a point is inside if it is between the edges', async (t) => {
    t.equal(isInside(L_SHAPE, { x: 1, y: 5 }), true)
    t.equal(isInside(L_SHAPE, { x: 5, y: 5 }), false)
    t.equal(isInside(L_SHAPE, { x: 7, y: 1 }), false)
  })
})
