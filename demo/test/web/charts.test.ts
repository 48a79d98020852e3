import t from 'tap'
import { niceMax } from '../../../src/ui/axis.js'
import { buildingsIn, occupancyLines } from '../../web/occupancy.js'
import { hourlyIndexes, indexAfterKey } from '../../web/time-chart.js'

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

  t.test('the table of a chart has the last value of each hour', async (t) => {
    const minutes = (...list: number[]): number[] => list.map((minute) => Date.UTC(2025, 10, 15, 9, minute))
    t.same(hourlyIndexes(minutes(0, 30, 55, 60, 90, 125)), [2, 4, 5])
    t.same(hourlyIndexes([]), [])
  })

  t.test('keys move through the values of a chart and stop at its ends', async (t) => {
    t.equal(indexAfterKey('ArrowLeft', null, 10), 8, 'from the newest value')
    t.equal(indexAfterKey('ArrowRight', 3, 10), 4)
    t.equal(indexAfterKey('ArrowRight', 9, 10), 9)
    t.equal(indexAfterKey('PageUp', 5, 100), 0)
    t.equal(indexAfterKey('PageDown', 5, 100), 17)
    t.same([indexAfterKey('Home', 5, 10), indexAfterKey('End', 5, 10)], [0, 9])
    t.same([indexAfterKey('Tab', 5, 10), indexAfterKey('Home', null, 0)], [null, null])
  })
})

t.test('occupancy', async (t) => {
  const floor = (floorId: string, buildingId: string, people: (number | null)[]) => ({
    ...{ floorId, floorName: `Floor ${floorId}`, buildingId, buildingName: `Building ${buildingId}`, people }
  })
  const occupancy = {
    at: [0, 300_000, 600_000],
    floors: [floor('f-1', '1', [1, null, 3]), floor('f-2', '1', [4, null, null]), floor('f-3', '2', [7, 8, 9])]
  }

  t.test('the lines of all buildings are the sums of their floors', async (t) => {
    t.same(occupancyLines(occupancy, ''), [
      { label: 'Building 1', values: [5, null, 3] },
      { label: 'Building 2', values: [7, 8, 9] }
    ])
  })

  t.test('the lines of one building are its floors', async (t) => {
    t.same(
      occupancyLines(occupancy, '1').map(({ label }) => label),
      ['Floor f-1', 'Floor f-2']
    )
    t.same(occupancyLines(occupancy, 'unknown'), [])
  })

  t.test('the buildings are those of the floors', async (t) => {
    t.same(buildingsIn(occupancy), [
      { id: '1', name: 'Building 1' },
      { id: '2', name: 'Building 2' }
    ])
  })
})
