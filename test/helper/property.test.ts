import fc from 'fast-check'
import { t } from 'tap'
import { checkProperty } from './property.js'

t.test('checkProperty reports the shrunk counterexample of a property that throws', async (t) => {
  const reports: unknown[] = []
  const property = fc.property(fc.nat(), (n) => {
    if (n >= 10) throw new Error('too large')
  })
  await checkProperty({ equal: (found) => reports.push(found) > 0 }, property)
  t.match(reports, [/Counterexample: \[10\]/])
})

t.test('checkProperty passes a property that holds', async (t) => {
  await checkProperty(
    t,
    fc.asyncProperty(fc.nat(), async (n) => n >= 0)
  )
})
