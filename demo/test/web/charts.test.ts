import t from 'tap'
import { niceMax } from '../../../src/ui/axis.js'
import { occupancyLines } from '../../web/occupancy.js'

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

t.test('occupancy is shown by building: the sums of its floors', async (t) => {
  const floor = (floorId: string, buildingId: string, people: (number | null)[]) => ({
    ...{ floorId, floorName: `Floor ${floorId}`, buildingId, buildingName: `Building ${buildingId}`, people }
  })
  const occupancy = {
    at: [0, 300_000, 600_000],
    floors: [floor('f-1', '1', [1, null, 3]), floor('f-2', '1', [4, null, null]), floor('f-3', '2', [7, 8, 9])]
  }
  t.same(occupancyLines(occupancy), [
    { label: 'Building 1', values: [5, null, 3] },
    { label: 'Building 2', values: [7, 8, 9] }
  ])
})
