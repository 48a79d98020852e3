import t from 'tap'
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
})
