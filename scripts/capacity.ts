/**
 * `npm run capacity -- --connections 100000 --floors 5000 --rate 1`: the machines that a service of this size needs.
 * docs/how-to/scale.md explains the formulas and the measurements.
 */
import { parseCapacityArguments, USAGE } from './lib/capacity/arguments.js'
import { MEASURED } from './lib/capacity/costs.js'
import { readMachineFile } from './lib/capacity/machine-file.js'
import { planFor } from './lib/capacity/plan.js'
import { planRows } from './lib/capacity/plan-rows.js'
import { print, runCommand } from './lib/command.js'

const FAST_MACHINE = `
These are the costs of a fast machine; others need up to three times as many cores. Measure yours:
npm run bench -- capacity --machine machine.json`

const main = (args: readonly string[]): number => {
  const { demand, machineFile } = parseCapacityArguments(args)
  const costs = machineFile === null ? MEASURED : readMachineFile(machineFile)
  const rows = planRows(demand, planFor(demand, costs)).map(([name, value]) => [name.replaceAll('*', ''), value])
  const width = Math.max(...rows.map(([name = '']) => name.length))
  for (const [name = '', value] of rows) print(`${name.padEnd(width)}  ${value}`)
  if (machineFile === null) print(FAST_MACHINE)
  return 0
}

await runCommand(USAGE, main)
