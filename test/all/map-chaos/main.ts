/** `npm run test:map-chaos`: clients follow maps while Redis is restarted, suspended and cut off. */
import { print, runCommand } from '../../../scripts/lib/command.js'
import { chaosOptions, hasNoViolations } from '../../helper/chaos-command.js'
import { mapChaos } from './chaos.js'

const USAGE = `Usage: npm run test:map-chaos [-- [--seconds <n>] [--clients <n>] [--seed <n>]]

Runs for 120 seconds with 30 clients on a Redis that keeps every confirmed write, then for as long on one that loses writes. After
each failure every client must have the state that Redis has, and the first Redis must have every confirmed change.`

const main = async (args: readonly string[]): Promise<number> => {
  const options = chaosOptions(args, { seconds: 120, clients: 30 })
  let result = 0
  for (const isDurable of [true, false]) {
    print(isDurable ? 'Redis keeps every confirmed write' : 'Redis loses writes')
    if (!(await hasNoViolations((cleanup) => mapChaos(cleanup, options, isDurable, print)))) result = 1
  }
  return result
}

await runCommand(USAGE, main)
