import t from 'tap'
import { costReport, minutes } from '../../../scripts/lib/test-cost.js'

t.test('costReport lists the ten most expensive files, most expensive first, and the sum of all', async (t) => {
  const costs = new Map(
    Array.from({ length: 12 }, (_, index) => [`file-${index}`, { seconds: 2 * index, cpuSeconds: index }])
  )
  const [total, ...files] = costReport(costs, (file) => `${file}.ts`)
  t.equal(total, 'CPU time of all test files: 1 min 6 s. The most expensive ones (CPU, time):')
  t.equal(files.length, 10)
  t.equal(files[0], '  11 s  22 s  file-11.ts')
  t.equal(files[9], '   2 s   4 s  file-2.ts')
})

t.test('costReport is empty if no file has stored its cost', async (t) => {
  t.same(costReport(new Map(), String), [])
})

t.test('minutes rounds to whole seconds', async (t) => {
  t.equal(minutes(59.6), '1 min 0 s')
})
