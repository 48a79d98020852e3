/**
 * `npm run capacity -- --connections 100000 --floors 5000 --rate 1`: the machines that a service of this size needs.
 * docs/how-to/scale.md explains the formulas and the measurements.
 */
import { demandFrom, USAGE } from './lib/capacity/arguments.js'
import { MEASURED } from './lib/capacity/costs.js'
import { planFor } from './lib/capacity/plan.js'
import { planRows } from './lib/capacity/plan-rows.js'
import { print, runCommand } from './lib/command.js'

const main = (args: readonly string[]): number => {
  const demand = demandFrom(args)
  const rows = planRows(demand, planFor(demand, MEASURED)).map(([name, value]) => [name.replaceAll('*', ''), value])
  const width = Math.max(...rows.map(([name = '']) => name.length))
  for (const [name = '', value] of rows) print(`${name.padEnd(width)}  ${value}`)
  return 0
}

await runCommand(USAGE, main)
