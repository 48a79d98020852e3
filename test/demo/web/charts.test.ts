import t from 'tap'
import { areaPath, byHour, columnsOf, linePath } from '../../../demo/web/charts.js'
import { niceMax } from '../../../src/ui/axis.js'

const box = { width: 100, height: 50 }

t.test('charts', async (t) => {
  const ENDS: readonly (readonly [number, number])[] = [
    [0, 1],
    [-3, 1],
    [1, 1],
    [7, 10],
    [18, 20],
    [201, 500],
    [0.3, 0.5]
  ]
  for (const [value, end] of ENDS) {
    t.test(`have an axis to ${end} for ${value}`, async (t) => t.equal(niceMax(value), end))
  }

  t.test('draw a line from edge to edge', async (t) => {
    t.equal(linePath([0, 5, 10], 10, box), 'M0 50L50 25L100 0')
    t.equal(linePath([5], 10, box), 'M50 25')
    t.equal(linePath([], 10, box), '')
  })

  t.test('close an area along the bottom', async (t) => {
    t.equal(areaPath([0, 10], 10, box), 'M0 50L100 0L100 50L0 50Z')
    t.equal(areaPath([], 10, box), '')
  })

  t.test('have an hour for everybody and for nobody', async (t) => {
    const counts = [
      { at: '2025-11-15T09:00:00Z', people: 3 },
      { at: '2025-11-15T11:00:00Z', people: 5 }
    ]

    t.same(
      byHour(counts).map(({ people }) => people),
      [3, 0, 5]
    )
    t.same(byHour([]), [])
  })

  t.test('stand columns beside each other', async (t) => {
    t.same(columnsOf([5, 10], 10, box, 10), [
      { x: 0, y: 25, width: 45, height: 25 },
      { x: 55, y: 0, width: 45, height: 50 }
    ])
    t.same(columnsOf([], 10, box, 10), [])
  })
})
