/**
 * `npm run capacity -- --connections 100000 --floors 5000 --rate 1`: what a service of this size takes. docs/how-to/scale.md has
 * the formulas, and what was measured for them.
 */
import { CapacityFault, demandFrom, HELP } from './capacity/arguments.js'
import { MEASURED } from './capacity/costs.js'
import { planFor } from './capacity/plan.js'
import { planRows } from './capacity/plan-rows.js'

const print = (args: readonly string[]): void => {
  const demand = demandFrom(args)
  if (demand === null) {
    process.stdout.write(HELP)
    return
  }
  const rows = planRows(demand, planFor(demand, MEASURED)).map(([name, value]) => [name.replaceAll('*', ''), value])
  const width = Math.max(...rows.map(([name = '']) => name.length))
  for (const [name = '', value] of rows) process.stdout.write(`${name.padEnd(width)}  ${value}\n`)
}

try {
  print(process.argv.slice(2))
} catch (error) {
  if (!(error instanceof CapacityFault)) throw error
  process.stderr.write(`capacity: ${error.message}\n`)
  process.exitCode = 1
}
