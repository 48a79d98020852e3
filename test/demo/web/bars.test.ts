import t from 'tap'
import { byHour } from '../../../demo/web/bars.js'
import { niceMax } from '../../../src/ui/axis.js'

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
    t.test(`the axis of a chart ends at ${end} for ${value}`, async (t) => t.equal(niceMax(value), end))
  }

  t.test('a chart has a bar for every hour, including empty ones', async (t) => {
    const counts = [
      { at: '2025-11-15T09:00:00Z', people: 3 },
      { at: '2025-11-15T11:00:00Z', people: 5 }
    ]

    t.same(
      byHour(counts).map(({ value }) => value),
      [3, 0, 5]
    )
    t.equal(new Set(byHour(counts).map(({ label }) => label)).size, 3)
    t.same(byHour([]), [])
  })
})
