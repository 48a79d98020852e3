import t from 'tap'
import { polygonError } from '../../../schemas/polygon.js'
import { cornerAfter, onFloor } from '../../web/floor-editor/area.js'
import { referencePoints, scaleOf, toImage } from '../../web/floor-editor/calibration.js'

const FLOOR = { width: 20, height: 10 }
const SQUARE = [
  { x: 1, y: 1 },
  { x: 5, y: 1 },
  { x: 5, y: 5 },
  { x: 1, y: 5 }
]

t.test('the corners of a zone', async (t) => {
  t.test('a corner is placed on the grid and on the floor', async (t) => {
    t.same(onFloor({ x: 3.333, y: 4.98 }, FLOOR), { x: 3.3, y: 5 })
    t.same(onFloor({ x: -4, y: 40 }, FLOOR), { x: 0, y: 10 })
  })

  t.test('a corner is added in the middle of an edge, and three of them are a valid area', async (t) => {
    t.same(cornerAfter(SQUARE, 3, FLOOR), { x: 1, y: 3 })
    for (const floor of [FLOOR, { width: 1, height: 30 }]) {
      const corners: { x: number; y: number }[] = []
      for (let index = 0; index < 3; index += 1) corners.push(onFloor(cornerAfter(corners, index - 1, floor), floor))
      t.equal(polygonError(corners, floor), null)
    }
  })
})

t.test('a calibration', async (t) => {
  const marks = { first: { x: 100, y: 50 }, second: { x: 400, y: 450 }, origin: { x: 20, y: 10 } }

  t.test('the scale of a plan follows from two points and their distance', async (t) => {
    t.equal(scaleOf(marks, 25), 20)
    for (const metres of [0, -1, Number.NaN]) t.equal(scaleOf(marks, metres), null)
    t.equal(scaleOf({ ...marks, second: marks.first }, 25), null)
  })

  t.test('the reference points are relative to the origin of the floor', async (t) => {
    t.same(referencePoints(marks, 20), [
      { pixel: { x: 100, y: 50 }, metre: { x: 4, y: 2 } },
      { pixel: { x: 400, y: 450 }, metre: { x: 19, y: 22 } }
    ])
  })

  t.test('a floor is drawn on its plan with the stored calibration', async (t) => {
    const stored = { pixelsPerMetre: 20, rotation: 3, origin: { x: 20, y: 10 } }
    t.equal(toImage(stored), 'translate(20 10) rotate(3) scale(20)')
    t.equal(toImage({}), 'translate(0 0) rotate(0) scale(1)')
  })
})
