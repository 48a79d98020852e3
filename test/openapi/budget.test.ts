import t from 'tap'
import { BudgetExceeded, ValidationBudget } from '../../src/openapi/budget.js'

/** So many steps that the time is compared with the limit for each text. */
const LONG = 'x'.repeat(600_000)

t.test('the CPU time of other threads does not count for a validation', async (t) => {
  const { cpuUsage } = process
  t.teardown(() => {
    process.cpuUsage = cpuUsage
  })
  let user = 0
  // Other threads use ten processors.
  process.cpuUsage = () => {
    user += 3_000_000
    return { user, system: 0 }
  }
  const pattern = new ValidationBudget(1).pattern('^x$')
  for (let count = 0; count < 5; count += 1) t.notOk(pattern.test(LONG))
})

t.test('a validation ends when its own time is used up', async (t) => {
  const budget = new ValidationBudget(1)
  const pattern = budget.pattern('(?:x{1,100}){1,10}$')
  t.throws(() => {
    for (let count = 0; count < 10_000; count += 1) pattern.test(LONG)
  }, BudgetExceeded)
})
